"""What a learner reads: progress by exercise, and the next hint."""

from __future__ import annotations

from gpucourse.actions.context import Context
from gpucourse.model.manifest import Exercise
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.workspace.files import read_json, read_record, write_record


def progress(context: Context) -> dict[str, ExerciseVerdict]:
    """The newest verdict of every exercise that has one."""
    names = sorted(path.name for path in context.paths.handed_in.glob("*"))
    found = {name: read_record(context.paths.verdict(name), ExerciseVerdict) for name in names}
    return {exercise: verdict for exercise, verdict in found.items() if verdict is not None}


def next_hint(context: Context, exercise_id: str) -> tuple[Exercise, int]:
    """The exercise and the number (from 1) of the next hint; remembered, and the last one stays the last."""
    _, exercise = context.catalog.exercise(exercise_id)
    found = read_json(context.paths.hints)
    given = found if isinstance(found, dict) else {}
    number = min(int(given.get(exercise.id, 0)) + 1, len(exercise.hints))
    write_record(context.paths.hints, given | {exercise.id: number})
    return exercise, number
