"""Words that many screens share: verdicts and states with their colours, choices, and the actions that Terraform will take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpucourse.model.record import RunRecord
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Cell, Style

if TYPE_CHECKING:
    from gpucourse.model.deployment import Deployment

VERDICTS: dict[str, Style] = {"passed": "good", "failed": "bad", "error": "warn"}
_STATES: dict[str, Style] = {
    "succeeded": "good",
    "failed": "bad",
    "timed_out": "bad",
    "lost": "bad",
    "cancelled": "warn",
    "broken": "warn",
}
_FUNCTIONS = {"count": "number of ", "min": "smallest ", "max": "largest ", "sum": "sum of ", "last": "last "}
_UNITS = re.compile(r"_(?:tok_per_s|[mk]ib|gb|percent|[mu]?s|times)$")
_ACTIONS = {"create": "to create", "delete": "to remove", "update": "to change", "replace": "to replace"}


def verdict_cell(verdict: str | None, suffix: str = "") -> Cell:
    """Return a verdict with its sign and its style, or a dash if there is none."""
    if verdict is None:
        return Cell(UNICODE.absent, "dim")
    return Cell(f"{UNICODE.mark(verdict)} {verdict.replace('_', ' ')}{suffix}", VERDICTS.get(verdict, "dim"))


def state_cell(record: RunRecord, suffix: str = "") -> Cell:
    """Return the state of a run in its style."""
    return Cell(f"{record.shown_state}{suffix}", _STATES.get(record.state, "accent"))


def checks_cell(record: RunRecord) -> Cell:
    """Return the verdict of a run's checks or, for a drill, whether its fault was found or repaired. A check that failed as
    the learner predicted is a success."""
    if record.drill and record.has_ended:
        word = "repaired" if record.repair else "found"
        is_done = record.verdict == "passed"
        return Cell(f"{UNICODE.good} {word}", "good") if is_done else Cell(f"{UNICODE.absent} not {word} yet", "dim")
    if record.as_predicted:
        return Cell(f"{UNICODE.good} failed as predicted", "good")
    return verdict_cell(record.shown_verdict)


def describe_drill(record: RunRecord) -> str:
    """Return in words which kind of drill a run is, or an empty string for other runs."""
    if not record.drill:
        return ""
    return "the copy that you repaired" if record.repair else "a fault was injected on purpose"


def count_nodes(count: int, deployment: Deployment) -> str:
    """Return the number of nodes of a lab: `2`, or `3 + head` with Slurm. `count` includes the head."""
    return f"{count - 1} + head" if deployment.has_slurm or deployment.template == "slurm-cluster" else str(count)


def name_evidence(evidence: str) -> str:
    """Return where a check can be measured: on every lab, or on GPUs only."""
    return "GPUs only" if evidence == "gpu" else "every lab"


def name_evidence_value(expression: str) -> str:
    """Return the name of a value of a run for a person: `the planned world size` for plan.world_size, `the run's largest loss
    after` for max(metrics.rows.loss_after)."""
    function, _, path = expression.rstrip(")").rpartition("(")
    root, *_, key = path.split(".")
    words = _UNITS.sub("", key).replace("_", " ")
    owner = "the planned" if root == "plan" else "the run's"
    return f"{owner} {_FUNCTIONS.get(function, '')}{words}"


def list_choices(choices: Mapping[str, str]) -> list[str]:
    """Return the choices of a question, each with its letter."""
    return [f"{letter}. {text}" for letter, text in choices.items()]


def count_actions(actions: Sequence[str]) -> str:
    """Return how many resources Terraform will create, change or remove: `7 to create, 1 to remove`."""
    return ", ".join(f"{actions.count(action)} {_ACTIONS.get(action, action)}" for action in dict.fromkeys(actions))
