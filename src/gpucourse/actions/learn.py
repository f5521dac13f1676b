"""What a learner reads: progress by exercise, the newest verdict, and a fresh check of the newest run."""

from __future__ import annotations

from gpucourse.actions import finish
from gpucourse.actions.context import Context
from gpucourse.errors import MissingError
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.workspace import runs
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


def check(context: Context, exercise_id: str) -> tuple[RunRecord, ExerciseVerdict]:
    """Evaluate the checks of an exercise again on its newest run that succeeded. Raises MissingError where there is none."""
    _, exercise = context.catalog.exercise(exercise_id)
    good = [record for record in runs.every(context.paths, exercise.id) if record.state == "succeeded"]
    if not good:
        raise MissingError(f"no run of {exercise.id} has succeeded yet", hint=f"gpucourse run {exercise.id}")
    record = good[-1]
    verdict = finish.judge(context, exercise, record)
    if verdict is None:
        raise MissingError(f"run {record.id} left no evidence to check", hint=f"gpucourse run {exercise.id}")
    record.verdict = verdict.verdict
    runs.save(context.paths, record)
    finish.deliver(context, exercise, record)
    return record, verdict
