"""What a learner reads: progress by exercise, what is still open, the next hint."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.learning.evidence import gather
from gpucourse.model.answer import AnswerResult
from gpucourse.model.manifest import Exercise
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs.results import handed_in
from gpucourse.workspace.mapping import changing

SCREEN = "screen.svg"


def progress(context: Context) -> dict[str, ExerciseVerdict]:
    """The newest verdict of every exercise that has one."""
    names = sorted(path.name for path in context.paths.handed_in.glob("*"))
    found = {name: handed_in(context, name) for name in names}
    return {exercise: verdict for exercise, verdict in found.items() if verdict is not None}


def next_hint(context: Context, exercise_id: str) -> tuple[Exercise, int]:
    """The exercise and the number (from 1) of the next hint; remembered, and the last one stays the last."""
    _, exercise = context.catalog.exercise(exercise_id)
    with changing(context.paths, context.paths.hints) as given:
        before = given.get(exercise.id, 0)
        given[exercise.id] = min((before if isinstance(before, int) else 0) + 1, len(exercise.hints))
    return exercise, given[exercise.id]


def still_open(context: Context, exercise: Exercise) -> tuple[tuple[str, ...], tuple[AnswerResult, ...]]:
    """What an exercise still asks for, one sentence each; and its questions with what their answers are worth."""
    found = gather(context, exercise, thorough=False)
    lines: list[str] = []
    if found.trouble:
        lines.append(found.trouble)
    elif found.run is None:
        lines.append(f"a good run: gpucourse run {exercise.id}")
    lines += [f"changed after the run: {', '.join(found.changed)}"] if found.changed else []
    bad = [check.title for check in found.checks if check.verdict in {"failed", "error"}]
    lines += [f"a check that passes: {title}" for title in bad]
    waiting = [each.id for each in found.answers if each.verdict == "open"]
    wrong = [each.id for each in found.answers if each.verdict == "failed"]
    lines += [f"answers to {', '.join(waiting)}: gpucourse answer {exercise.id}"] if waiting else []
    lines += [f"better answers to {', '.join(wrong)}: gpucourse answer {exercise.id}"] if wrong else []
    missing = [each for each in found.wanted if each not in found.handed_in] if found.run and not found.trouble else []
    lines += [f"to hand in: {', '.join(missing)}"] if missing else []
    screen = next((each.title for each in exercise.deliverables if each.source == SCREEN), None)
    lines += [f"a look at the result, which captures it: gpucourse logs {found.run} -f"] if screen in missing else []
    return tuple(lines), found.answers
