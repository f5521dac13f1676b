"""`next`: where the learner is, and the one thing to do."""

from __future__ import annotations

from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.grading.signs import list_unanswered, read_signs
from gpucourse.learning.evidence import gather
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.score import ExerciseEvidence, Signs
from gpucourse.runs.prepare import find_deployed_lab


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """The first exercise that is not done, its signs, and what to do: in words, and as a command. Without an exercise, all are
    done."""

    exercise: Exercise | None
    signs: Signs | None
    what: str
    command: str


def find_next_step(context: Context) -> NextStep:
    """The one thing to do next. Raises MissingError for a course without exercises."""
    if not context.catalog.modules:
        raise MissingError("this course has no exercises", hint="gpucourse list")
    for module in context.catalog.modules:
        for exercise in module.exercises:
            evidence = gather(context, exercise, thorough=False)
            signs = read_signs(evidence)
            if not signs.is_done:
                what, command = _choose(context, module, exercise, evidence, signs)
                return NextStep(exercise=exercise, signs=signs, what=what, command=command)
    return NextStep(
        exercise=None, signs=None, what="every exercise is done: hand in your work", command="gpucourse grade --bundle work.zip"
    )


def _choose(context: Context, module: Module, exercise: Exercise, evidence: ExerciseEvidence, signs: Signs) -> tuple[str, str]:
    if not signs.ran:
        return _choose_run(context, module, exercise, evidence)
    if signs.yours is False:
        part = next(part for part in evidence.parts if part.verdict != "passed")
        written = next(item.write for item in exercise.yours if item.id == part.id)
        verb = "write your part" if part.verdict == "open" else "correct your part"
        return f"{verb}, {part.file}: {written if part.verdict == 'open' else part.says}", f"gpucourse try {exercise.id}"
    return f"answer {', '.join(list_unanswered(evidence))}", f"gpucourse answer {exercise.id}"


def _choose_run(context: Context, module: Module, exercise: Exercise, evidence: ExerciseEvidence) -> tuple[str, str]:
    bad = [check.title for check in evidence.checks if check.verdict in {"failed", "error"}]
    try:
        find_deployed_lab(context, module)
    except MissingError as error:
        return error.what, error.hint or f"gpucourse deploy {module.id}"
    if evidence.trouble or evidence.changed:
        return (
            f"run it again: {evidence.trouble or f'changed after the run: {evidence.changed[0]}'}",
            f"gpucourse run {exercise.id}",
        )
    if bad:
        return f"a check did not pass: {bad[0]}", f"gpucourse hint {exercise.id}"
    return f"read what it is about (gpucourse show {exercise.id}), and run it", f"gpucourse run {exercise.id}"
