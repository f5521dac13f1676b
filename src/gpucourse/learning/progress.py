"""The learner's progress in the course."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs.results import read_handed_in_verdict


def progress(context: Context) -> dict[str, ExerciseVerdict]:
    """Return the newest verdict of every exercise that has one."""
    names = sorted(path.name for path in context.paths.deliverables_root.glob("*"))
    verdicts = {name: read_handed_in_verdict(context, name) for name in names}
    return {exercise: verdict for exercise, verdict in verdicts.items() if verdict is not None}
