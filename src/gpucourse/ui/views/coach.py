"""What the failure coach says, on the screen: the symptom, why it is, by which lines it was recognised, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.model.diagnosis import Diagnosis, Quote
from gpucourse.model.drill import HOWS, MEANING
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.ui.tables import Cell, Facts, Part, View, facts

SHOWN = 2  # quotes


def diagnoses(found: Sequence[Diagnosis]) -> list[Part]:
    """Each diagnosis as facts, the likeliest first."""
    return [_diagnosis(each, "Diagnosis" if number == 0 else "Besides") for number, each in enumerate(found)]


def _diagnosis(found: Diagnosis, title: str) -> Part:
    return facts(
        [
            ("symptom", Cell(f"{found.title} [{found.symptom}]", "bad")),
            ("seen", "\n".join(_quoted(quote) for quote in found.seen[:SHOWN])),
            ("why", found.why),
            ("next", Cell(found.next, "accent")),
        ],
        title=title,
    )


def _quoted(quote: Quote) -> str:
    who = "launcher" if quote.rank is None else f"rank {quote.rank}"
    line = quote.line if len(quote.line) <= 160 else f"{quote.line[:157]}..."
    return f"{quote.node} {who}: {line}"


def drill(record: RunRecord) -> View:
    """A run with a planted fault is over: how it ended for everybody to see, and how to say what it was."""
    ends = [f"{each.node}: {each.reason.replace('_', ' ')}, code {each.code}" for each in record.node_exits]
    words = [(how, MEANING[how]) for how in HOWS]
    return View(
        title=f"{record.exercise}  break drill",
        parts=(
            facts([("run", record.id), ("ranks", str(record.world_size)), ("ended", "\n".join(ends))]),
            Facts(tuple(words), title="One of these was planted. Which, and in which rank?"),
        ),
        footer=(
            f"Look: gpucourse logs {record.id}, with --rank R, --fold or --times",
            f"Then say it: gpucourse check {record.exercise} --diagnosis WORD --rank R (the rank where it sits in one)",
        ),
        mode=record.mode,
    )


def diagnosed(record: RunRecord, verdict: ExerciseVerdict) -> View:
    """What became of a diagnosis; a right one comes with the coach's own words."""
    from gpucourse.ui.views.run import checks

    parts = [*checks(verdict), *diagnoses(record.diagnoses)]
    return View(title=f"{record.exercise}  drill {record.id}", parts=tuple(parts), mode=record.mode)
