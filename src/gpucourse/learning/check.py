"""`check`: judges runs again, with the current checks of the course. An exercise that no longer passes is no longer marked as
passed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.learning import evidence
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import CheckResult, ExerciseVerdict, Verdict
from gpucourse.runs import finish, parts, results
from gpucourse.runs.mutations import is_as_predicted
from gpucourse.workspace import runs, seals
from gpucourse.workspace.files import read_json, write_record
from gpucourse.workspace.paths import RunPaths, WorkspacePaths


@dataclass(frozen=True, kw_only=True)
class Recheck:
    """One exercise after the check: its new verdict, and the word of its old verdict. `missing` lists missing deliverables."""

    exercise: str
    title: str
    verdict: ExerciseVerdict | None
    before: str | None
    missing: tuple[str, ...] = ()

    @property
    def has_regressed(self) -> bool:
        """Return whether the exercise passed before but does not pass now."""
        return self.before == "passed" and (self.verdict is None or self.verdict.verdict != "passed")


def check(context: Context, exercise_id: str, run: str | None = None) -> tuple[RunRecord, ExerciseVerdict]:
    """Judge a run of an exercise again: `run`, or by default the newest run that succeeded. Return the run and its verdict.

    Raises MissingError if no run has succeeded. Raises UnknownName or UsageError if `run` is not a good run of the exercise.
    """
    _, exercise = context.catalog.exercise(exercise_id)
    record = (
        evidence.find_good_run(context.paths, exercise, run) if run else evidence.find_newest_candidate(context.paths, exercise)
    )
    if record is None:
        raise MissingError(f"no run of {exercise.id} has succeeded yet", hint=f"gpucourse run {exercise.id}")
    files = runs.files_of(context.paths, record)
    verdict = _judge_exercise(context, exercise, record)
    parts.judge_kept_again(context, exercise)
    _keep_verdict(context.paths, files, record, verdict)
    finish.deliver(context.paths, exercise, record)
    _mark(context.paths, exercise, verdict)
    return record, verdict


def is_script(paths: WorkspacePaths, name: str) -> bool:
    """Return whether a learner's script has run under that name."""
    return any(runs.readable(paths, runs.script_place(Path(name))))


def check_script(context: Context, name: str, run: str | None = None) -> tuple[RunRecord, ExerciseVerdict]:
    """Judge a run of the learner's own script again, with the checks of that run: `run`, or by default the newest run that
    succeeded. Return the run and its verdict.

    Raises MissingError if no run had checks or a file is damaged, and UnknownName or UsageError if `run` is not such a run.
    """
    records = runs.readable(context.paths, runs.script_place(Path(name)))[0]  # `a b.py` and `a_b.py` share this folder
    candidates = [record for record in records if record.brings_checks and record.subject == Path(name).name]
    candidates = [record for record in candidates if record.is_of_script(name)] or candidates
    if run is not None:
        run_id = runs.find(context.paths, run, name).id
        candidates = [record for record in candidates if record.id == run_id]
    if not candidates:
        subject = f"run {run} of {name}" if run else f"no run of {name}"
        words = records[-1].run_words if records else ["--script", name]
        raise MissingError(
            f"{subject} {'did not succeed with' if run else 'has succeeded with'} its own checks",
            hint=f"{join(['gpucourse', 'run', *words])} --checks FILE",
        )
    record = candidates[-1]
    files = runs.files_of(context.paths, record)
    verdict = _judge_run(context.paths, record.subject, record, lambda: results.judge_own_checks(context, record))
    _keep_verdict(context.paths, files, record, verdict)
    return record, verdict


def find_namesakes(paths: WorkspacePaths, record: RunRecord) -> list[str]:
    """Return the other scripts with the same file name. Their runs are in the same folder as the runs of this script."""
    records = runs.readable(paths, record.folder)[0]
    scripts = {candidate.own_script for candidate in records if candidate.own_script and candidate.subject == record.subject}
    return sorted(scripts - {record.own_script})


def check_all(context: Context) -> list[Recheck]:
    """Judge the run that counts for each exercise again, and return the old and new verdicts. An exercise that no longer passes
    is no longer marked as passed."""
    rechecks: list[Recheck] = []
    for exercise in context.catalog.exercises:
        stored = results.read_stored_verdict(context.paths, exercise.id)
        record = evidence.find_counting_run(context.paths, exercise)
        is_own_script = stored is not None and results.read_handed_in_verdict(context.paths, exercise.id) is None
        verdict = _judge_exercise(context, exercise, record) if record else _void(stored, is_own_script=is_own_script)
        parts.judge_kept_again(context, exercise)
        if verdict is not None:
            _mark(context.paths, exercise, verdict)
        missing: tuple[str, ...] = ()
        if record:
            pieces = evidence.gather(context, exercise, thorough=False, with_prediction=False)
            missing = tuple(title for title in pieces.wanted if title not in pieces.handed_in)
        former_verdict = stored.verdict if stored else None
        rechecks.append(
            Recheck(exercise=exercise.id, title=exercise.title, verdict=verdict, before=former_verdict, missing=missing)
        )
    return rechecks


def _keep_verdict(paths: WorkspacePaths, files: RunPaths, record: RunRecord, verdict: ExerciseVerdict) -> None:
    """Store the verdict with the run. Seal the verdict if the record has not changed since the run ended."""
    try:
        document: object = read_json(files.hashes)
    except MissingError:  # damaged, so the record counts as changed
        document = None
    untouched = not seals.find_changed_files(files, ("run.json",), seal=seals.select_digests(document))
    record.verdict = verdict.verdict
    record.as_predicted = is_as_predicted(record, verdict)
    write_record(files.verdict, verdict)
    if not untouched:
        runs.save(paths, record)
        return
    seals.save_sealed(files, record, document, changed_names=(files.verdict.name,))


def _judge_exercise(context: Context, exercise: Exercise, record: RunRecord) -> ExerciseVerdict:
    return _judge_run(context.paths, exercise.id, record, lambda: finish.judge_again(context, exercise, record))


def _judge_run(
    paths: WorkspacePaths, subject: str, record: RunRecord, judge_again: Callable[[], ExerciseVerdict]
) -> ExerciseVerdict:
    """Return the verdict on a run. If a file is damaged, or has changed since the run ended, the verdict contains an
    additional check, which failed.
    """
    changed_files = seals.find_changed_files(runs.files_of(paths, record))
    try:
        verdict = judge_again()
    except GpucourseError as error:
        damage_check = _extra("readable", "The run's files can be read", "error", error.what, "whole files", error.hint)
        return ExerciseVerdict(exercise=subject, run=record.id, mode=record.mode, verdict="error", checks=(damage_check,))
    if not changed_files:
        return verdict
    names = ", ".join(changed_files[:4]) + (f" and {len(changed_files) - 4} more" if len(changed_files) > 4 else "")
    command = join(["gpucourse", "run", *record.run_words])
    hint = f"put the files back as they were, or run it again: {command}"
    title = "The run's files have not changed since it ended"
    seal_check = _extra("unchanged", title, "failed", f"changed: {names}", "unchanged", hint)
    return replace(verdict, verdict="failed", checks=(*verdict.checks, seal_check))


def _void(stored: ExerciseVerdict | None, *, is_own_script: bool) -> ExerciseVerdict | None:
    """Return the stored verdict changed to `error`, because its run no longer exists or, with `is_own_script`, ran a learner's
    script. Return None if there is no stored verdict."""
    if stored is None:
        return None
    hint = f"run it again: gpucourse run {stored.exercise}"
    reason = _extra("run", "The run still exists", "error", f"run {stored.run} is gone", "its folder under runs/", hint)
    if is_own_script:
        explanation = f"run {stored.run} ran a script of your own"
        reason = _extra("script", "The exercise's script ran", "error", explanation, "the script of the exercise", hint)
    return replace(stored, verdict="error", checks=(reason,))


def _mark(paths: WorkspacePaths, exercise: Exercise, verdict: ExerciseVerdict) -> None:
    """Hand in the verdict, unless the verdict on another existing run is already handed in."""
    path = paths.verdict(exercise.id)
    handed_in = results.read_handed_in_verdict(paths, exercise.id)
    if handed_in is None or handed_in.run == verdict.run or not paths.run(exercise.id, handed_in.run).record.exists():
        write_record(path, verdict)


def _extra(name: str, title: str, verdict: Verdict, observed: str, expectation: str, hint: str) -> CheckResult:
    return CheckResult(
        id=name,
        title=title,
        verdict=verdict,
        evidence="logic",
        observed=observed,
        expected=expectation,
        hint=hint,
    )
