"""Find the exercise files that the learner has edited, and judge runs for which the learner predicted which check would
fail."""

from __future__ import annotations

from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import CheckFailed, UnknownName, UsageError
from gpucourse.grading.edits import MAX_BYTES
from gpucourse.model.manifest import Exercise
from gpucourse.model.questions import Question
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.workspace import runs, seals
from gpucourse.workspace.files import copy_file


def check_expectation(context: Context, exercise: Exercise, check: str) -> None:
    """Check that the exercise has this check and that the learner has edited one of its files. `check` may be empty if the
    learner has not chosen a check yet.

    Raises UnknownName if the exercise has no such check, and UsageError if no file is edited.
    """
    checks = [item.id for item in exercise.checks]
    if check and check not in checks:
        raise UnknownName("check", check, checks, hint=f"checks of {exercise.id}: {', '.join(checks)}")
    if not find_edited_files(context, exercise):
        file = next((question.edit for question in exercise.questions if question.edit), exercise.script)
        raise UsageError(
            f"no file of {exercise.id} is edited, apart from parts that you write, so no check will fail",
            hint=f"edit {context.paths.exercises / context.catalog.sources(exercise)[file]}, "
            f"then: {exercise.mutation_command} {check}".rstrip(),
        )


def find_edited_files(context: Context, exercise: Exercise) -> dict[str, Path]:
    """Return the learner's copies of the exercise's files that differ from the course's, by their names on a node."""
    places = context.catalog.sources(exercise)
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
    _, exercise = context.catalog.exercise(record.exercise)
    edited_files = find_edited_files(context, exercise)
    record.edited = list(edited_files)
    parts = {part.file for part in exercise.yours}
    for name, copy in edited_files.items():
        if name not in parts and copy.stat().st_size <= MAX_BYTES:
            copy_file(copy, runs.files_of(context.paths, record).edited_file(name))


def find_mutated_file(context: Context, exercise: Exercise, question: Question, *, is_right: bool) -> Path | None:
    """Return the learner's copy of the question's file if it still equals the file of a run with the right prediction,
    otherwise None. Without `is_right`, a run with any prediction counts."""
    file = find_edited_files(context, exercise).get(str(question.edit))
    if file is None:
        return None
    digest = seals.sha256(file)
    for record in runs.iterate_newest_first(context.paths, exercise.id):
        has_predicted_it = record.expected_red == question.check if is_right else record.expected_red is not None
        if has_predicted_it and record.state == "succeeded":
            edited_file = runs.files_of(context.paths, record).edited_file(str(question.edit))
            if seals.sha256(edited_file) == digest:
                return file
    return None


def list_red_checks(verdict: ExerciseVerdict | None) -> list[str]:
    """Return the checks that did not pass."""
    return [check.id for check in verdict.checks if check.verdict in {"failed", "error"}] if verdict else []


def is_as_predicted(record: RunRecord, verdict: ExerciseVerdict | None) -> bool:
    """Return whether the check that the learner named failed and no other check failed."""
    return record.expected_red is not None and list_red_checks(verdict) == [record.expected_red]


def find_explanation(exercise: Exercise, record: RunRecord, verdict: ExerciseVerdict | None) -> str:
    """Return the explanation of the mutation if exactly the predicted check failed in this run, or an empty string."""
    if not is_as_predicted(record, verdict):
        return ""
    mutations = (item for item in exercise.questions if item.check == record.expected_red and item.edit in record.edited)
    return next((item.explanation or "" for item in mutations), "")


def confirm_expectation(record: RunRecord, verdict: ExerciseVerdict | None) -> None:
    """Check that exactly one check failed, the one that the learner named. Raises CheckFailed if another check, several checks
    or no check failed.
    """
    if is_as_predicted(record, verdict):
        return
    red = list_red_checks(verdict)
    outcome = f"{', '.join(red)} failed" if red else "no check failed"
    raise CheckFailed(
        f"you predicted that {record.expected_red} would fail; {outcome}",
        hint=f"look at the edit again, then: gpucourse run {record.exercise} --expect-red",
    )
