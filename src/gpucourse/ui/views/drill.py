"""Break drills on the screen: what can be seen of a run with an injected fault, and what became of a diagnosis."""

from __future__ import annotations

from gpucourse.model.drill import HOWS, MEANING
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.ui.tables import Facts, View, facts
from gpucourse.ui.views.checks import checks
from gpucourse.ui.views.coach import diagnoses


def drill(record: RunRecord) -> View:
    """A run with an injected fault is over: how it ended for everybody to see, and how to say what it was."""
    ends = [f"{node_exit.node}: {node_exit.reason.replace('_', ' ')}, code {node_exit.code}" for node_exit in record.node_exits]
    words = [(how, MEANING[how]) for how in HOWS]
    return View(
        title=f"{record.exercise}  break drill",
        parts=(
            facts([("run", record.id), ("ranks", str(record.world_size)), ("ended", "\n".join(ends))]),
            Facts(tuple(words), title="One of these faults was injected. Which one, and in which rank?"),
        ),
        footer=(
            f"Look: gpucourse logs {record.id}, with --rank R, --fold or --times",
            f"Then submit: gpucourse check {record.exercise} --diagnosis WORD --rank R (--rank only if one rank is at fault)",
        ),
        mode=record.mode,
    )


def diagnosis_result(record: RunRecord, verdict: ExerciseVerdict) -> View:
    """What became of a diagnosis; a right one comes with the coach's own words."""
    parts = [*checks(verdict), *diagnoses(record.diagnoses)]
    return View(title=f"{record.exercise}  drill {record.id}", parts=tuple(parts), mode=record.mode)
