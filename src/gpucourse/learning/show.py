"""`show`: what an exercise still requires."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.grading.points import read_signs
from gpucourse.learning.evidence import gather
from gpucourse.model.answer import AnswerResult
from gpucourse.model.manifest import Exercise
from gpucourse.model.score import Signs

SCREEN = "screen.svg"


def still_open(context: Context, exercise: Exercise) -> tuple[tuple[str, ...], tuple[AnswerResult, ...], Signs]:
    """Return a sentence for each thing that an exercise still requires, the results of its answers, and its signs of
    progress."""
    evidence = gather(context, exercise, thorough=False, with_prediction=False)
    lines: list[str] = []
    if evidence.trouble:
        lines.append(evidence.trouble)
    elif evidence.run is None:
        lines.append(f"a good run: gpucourse run {exercise.id}")
    lines += [f"changed after the run: {', '.join(evidence.changed)}"] if evidence.changed else []
    failed_titles = [check.title for check in evidence.checks if check.verdict in {"failed", "error"}]
    lines += [f"a check that passes: {title}" for title in failed_titles]
    part_files = [part.file for part in evidence.parts if part.verdict != "passed"]
    lines += [f"your part, {', '.join(part_files)}: gpucourse try {exercise.id}"] if part_files else []
    waiting = [item.id for item in evidence.answers if item.verdict == "open"]
    wrong_ids = [item.id for item in evidence.answers if item.verdict == "failed" and not item.final]
    lines += [f"answers to {', '.join(waiting)}: gpucourse answer {exercise.id}"] if waiting else []
    lines += [f"better answers to {', '.join(wrong_ids)}: gpucourse answer {exercise.id}"] if wrong_ids else []
    missing = (
        [item for item in evidence.wanted if item not in evidence.handed_in] if evidence.run and not evidence.trouble else []
    )
    lines += [f"to hand in: {', '.join(missing)}"] if missing else []
    screen = next((item.title for item in exercise.deliverables if item.source == SCREEN), None)
    lines += [f"a picture of the result, made by: gpucourse logs {evidence.run} -f"] if screen in missing else []
    return tuple(lines), evidence.answers, read_signs(evidence)
