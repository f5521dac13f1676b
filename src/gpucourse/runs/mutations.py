"""The exercise files that the learner has edited, and runs for which the learner predicted which check would fail."""

from __future__ import annotations

from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import CheckFailed, UnknownName, UsageError
from gpucourse.grading.edits import MAX_BYTES
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.workspace import runs, seals
from gpucourse.workspace.files import copy_file


def check_expectation(context: Context, module: Module, exercise: Exercise, check: str) -> None:
    """Check that the exercise has this check and that the learner has edited one of its files.

    Raises UnknownName if it has no such check, UsageError if no file is edited.
    """
    checks = [item.id for item in exercise.checks]
    if check not in checks:
        raise UnknownName("check", check, checks, hint=f"checks of {exercise.id}: {', '.join(checks)}")
    if not find_edited_files(context, module, exercise):
        raise UsageError(
            f"every file of {exercise.id} is unedited, so no check will fail",
            hint=f"edit {context.paths.exercises / context.catalog.sources(module, exercise)[exercise.script]}, "
            f"then: gpucourse run {exercise.id} --expect-red {check}",
        )


def find_edited_files(context: Context, module: Module, exercise: Exercise) -> dict[str, Path]:
    """Return the learner's copies of the exercise's files that differ from the course's, by their names on a node."""
    places = context.catalog.sources(module, exercise)
    return {
        name: copy
        for name, place in places.items()
        if (digest := seals.sha256(copy := context.paths.exercises / place))
        and digest != seals.sha256(context.folders.exercises / place)
    }


def keep_edited_files(context: Context, record: RunRecord) -> None:
    """Record which files of the exercise the learner has edited, and keep a copy of each in the run's folder.

    An instructor sees them as a diff. The learner's parts are not copied here: they are kept for their judges.
    """
    if record.own_script:
        return
    module, exercise = context.catalog.exercise(record.exercise)
    edited_files = find_edited_files(context, module, exercise)
    record.edited = list(edited_files)
    parts = {part.file for part in exercise.yours}
    for name, copy in edited_files.items():
        if name not in parts and copy.stat().st_size <= MAX_BYTES:
            copy_file(copy, runs.files_of(context.paths, record).edited_file(name))


def list_red_checks(verdict: ExerciseVerdict | None) -> list[str]:
    """Return the checks that did not pass."""
    return [check.id for check in verdict.checks if check.verdict in {"failed", "error"}] if verdict else []


def confirm_expectation(record: RunRecord, verdict: ExerciseVerdict | None) -> str:
    """Return the sentence for a correct prediction: exactly the check that the learner named has failed.

    Raises CheckFailed if another check, several checks or no check failed.
    """
    red = list_red_checks(verdict)
    if red == [record.expected_red]:
        return f"as you predicted: {record.expected_red} failed, and no other check"
    outcome = f"{', '.join(red)} failed" if red else "no check failed"
    raise CheckFailed(
        f"you predicted that {record.expected_red} would fail; {outcome}",
        hint=f"look at the edit again, then: gpucourse run {record.exercise} --expect-red CHECK",
    )
