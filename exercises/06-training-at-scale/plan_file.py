"""Read my_plan.yaml of 6.6: its values, its empty keys and its faults. The run and the judge use this."""

from __future__ import annotations

from collections.abc import Mapping

from decision_file import DecisionFile
from plans import CHECKPOINTING, PRECISIONS, SCHEDULES, ZERO, Plan
from targets import CLUSTERS, PUZZLES, TARGETS

WORDS = {"target": tuple(TARGETS), "cluster": tuple(CLUSTERS), "checkpointing": CHECKPOINTING, "precision": PRECISIONS}
WORDS["schedule"] = SCHEDULES
DEFAULTS = {"ranks.cp": 1, "ranks.ep": 1, "schedule": "1f1b"}  # of keys that a plan may leave out
RANKS = ("ranks.dp", "ranks.pp", "ranks.tp")
KEYS = ("target", "cluster", "puzzle", *RANKS, "zero", "checkpointing", "micro_batches", "precision", "save_every", "reasons")
NUMBERS = ("puzzle", *RANKS, "ranks.cp", "ranks.ep", "zero", "micro_batches", "save_every")
MAX_NUMBER = 10**9


class PlanFile(DecisionFile):
    """The content of my_plan.yaml. The keys of `ranks` are ranks.dp and so on."""

    @property
    def plan(self) -> Plan | None:
        """Return the plan, or None while one of its keys is empty or wrong. `reasons` may be empty."""
        if not self.is_complete:
            return None
        ranks = (self.values[name] for name in RANKS)
        settings = (self.values[name] for name in ("zero", "checkpointing", "micro_batches", "precision", "save_every"))
        return Plan(*ranks, *settings, *(self.values.get(name, default) for name, default in DEFAULTS.items()))


def read_plan(document: object) -> PlanFile:
    """Return a plan from the content of a YAML file.

    Faults are unknown and missing keys, and values of a wrong type or out of range.
    """
    file = PlanFile()
    entries = document
    if isinstance(document, Mapping):
        entries = {key: value for key, value in document.items() if key != "ranks"}
        ranks = document.get("ranks")
        if isinstance(ranks, Mapping):
            entries |= {f"ranks.{key}": value for key, value in ranks.items()}
        elif ranks is not None:
            file.faults.append(f"ranks: {ranks} is not a mapping; write dp, pp and tp below it, each with its number")
    file.read(entries, KEYS, _find_fault, example="target: 1.3b", optional=DEFAULTS)
    return file


def _find_fault(key: str, value: object) -> str | None:
    if key == "zero" and value not in ZERO:
        return f"zero: {value} is not one of {', '.join(map(str, ZERO))}"
    if key in NUMBERS:
        minimum, maximum = (0 if key == "zero" else 1), len(PUZZLES) if key == "puzzle" else MAX_NUMBER
        if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
            return None
        return f"{key}: {value} is not a whole number from {minimum} to {maximum:,}"
    if key in WORDS and value not in WORDS[key]:
        return f"{key}: {value} is not one of {', '.join(WORDS[key])}"
    return None if isinstance(value, str) else f"{key}: {value} is not text"
