"""`show`: what an exercise still requires, and the model solutions once it is right."""

from __future__ import annotations

from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.course.part_files import choose_solution
from gpucourse.errors import MissingError, UsageError
from gpucourse.grading.points import read_signs
from gpucourse.learning.evidence import gather
from gpucourse.model.answer import AnswerResult
from gpucourse.model.manifest import Exercise, LearnerPart
from gpucourse.model.score import Signs
from gpucourse.model.verdict import choose_needed

SCREEN = "screen.svg"


def list_open_work(context: Context, exercise: Exercise) -> tuple[tuple[str, ...], tuple[AnswerResult, ...], Signs]:
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
    lines += [f"your part, {', '.join(part_files)}: {exercise.judge_command}"] if part_files else []
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


@dataclass(frozen=True, kw_only=True)
class ModelSolution:
    """A part as the learner handed it in, and a solution of the course."""

    part: LearnerPart
    submission: str
    solution: str


def read_solutions(context: Context, exercise: Exercise) -> tuple[ModelSolution, ...]:
    """Return the learner's right parts, each with a solution of the course.

    Raises UsageError if the exercise has no part. Raises MissingError if a part is not right yet, if no run has passed, or if
    the course has no solution.
    """
    if not exercise.yours:
        raise UsageError(f"{exercise.id} has no part for you to write", hint=f"gpucourse show {exercise.id}")
    evidence = gather(context, exercise, thorough=False, with_prediction=False)
    signs = read_signs(evidence)
    missing_text = " and ".join(["a part that is right"] * (not signs.yours) + ["a run that passed"] * (not signs.ran))
    if missing_text:
        raise MissingError(
            f"{exercise.id} still needs {missing_text}; then this shows a model solution beside yours",
            hint=f"gpucourse run {exercise.id}" if signs.yours else exercise.judge_command,
        )
    places = context.catalog.part_places(exercise)
    parts = {part.id: part for part in exercise.yours}
    solutions: list[ModelSolution] = []
    for result in choose_needed(exercise.yours, evidence.parts):
        file = context.paths.yours_file(exercise.id, result.file)
        solution = choose_solution(file, context.folders.exercises / places[result.id])
        if solution is None:
            raise MissingError(
                f"this course has no solution of {result.file}", hint="gpucourse dev check names what is missing"
            )
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in (file, solution)]
        solutions.append(ModelSolution(part=parts[result.id], submission=texts[0], solution=texts[1]))
    return tuple(solutions)
