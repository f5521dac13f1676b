"""`show`: what an exercise still asks for."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.learning.evidence import gather
from gpucourse.model.answer import AnswerResult
from gpucourse.model.manifest import Exercise

SCREEN = "screen.svg"


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
