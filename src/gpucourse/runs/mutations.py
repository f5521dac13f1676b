"""A run after an edit, of which the learner said which check would go red."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.errors import CheckFailed, UnknownName, UsageError
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.workspace import seals


def check_expectation(context: Context, module: Module, exercise: Exercise, check: str) -> tuple[str, ...]:
    """The files of the exercise that the learner has edited. Raises UnknownName for a check that the exercise does not have,
    UsageError where nothing is edited."""
    known = [item.id for item in exercise.checks]
    if check not in known:
        raise UnknownName("check", check, known, hint=f"checks of {exercise.id}: {', '.join(known)}")
    edited = tuple(
        name
        for name, place in context.catalog.sources(module, exercise).items()
        if (digest := seals.sha256(context.paths.exercises / place))
        and digest != seals.sha256(context.folders.exercises / place)
    )
    if not edited:
        raise UsageError(
            f"every file of {exercise.id} is as it was delivered, so no check will fail",
            hint=f"edit {context.paths.exercises / context.catalog.sources(module, exercise)[exercise.script]}, "
            f"then: gpucourse run {exercise.id} --expect-red {check}",
        )
    return edited


def list_red_checks(verdict: ExerciseVerdict | None) -> list[str]:
    """The checks that did not pass."""
    return [check.id for check in verdict.checks if check.verdict in {"failed", "error"}] if verdict else []


def confirm_expectation(record: RunRecord, verdict: ExerciseVerdict | None) -> str:
    """The sentence where the very check that the learner named went red. Raises CheckFailed where another one, several or none
    did."""
    red = list_red_checks(verdict)
    if red == [record.expected_red]:
        return f"as you predicted: {record.expected_red} failed, and no other check"
    what = f"{', '.join(red)} failed" if red else "no check failed"
    raise CheckFailed(
        f"you predicted that {record.expected_red} would fail; {what}",
        hint=f"look at the edit again, then: gpucourse run {record.exercise} --expect-red CHECK",
    )
