"""The results of a run: the data for checks and questions, the verdict on the run, and the verdict that is handed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpucourse.context import Context
from gpucourse.errors import MissingError, NewerFormat
from gpucourse.model.answer import PredictionResult
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from gpucourse.runs.parts import add_stored_parts
from gpucourse.workspace import runs
from gpucourse.workspace.files import check_record, read_json, read_metrics, read_record
from gpucourse.workspace.paths import WorkspacePaths


def read_stored_verdict(paths: WorkspacePaths, exercise_id: str) -> ExerciseVerdict | None:
    """Return the verdict in `deliverables/`, or None if there is none. Raises NewerFormat if a newer gpucourse wrote it.

    A damaged verdict counts as none, because `check` judges again and replaces it.
    """
    path = paths.verdict(exercise_id)
    try:
        verdict = read_record(path, ExerciseVerdict)
        if verdict is not None:
            check_record(path, names=(verdict.run,))  # the name becomes a path
    except NewerFormat:
        raise
    except MissingError:
        return None
    return verdict


def read_handed_in_verdict(paths: WorkspacePaths, exercise_id: str) -> ExerciseVerdict | None:
    """Return the verdict that is handed in for an exercise.

    A verdict on a learner's own script does not count: earlier versions handed in such verdicts.
    """
    verdict = read_stored_verdict(paths, exercise_id)
    if verdict is None:
        return None
    try:
        record = read_record(paths.run(exercise_id, verdict.run).record, RunRecord)
    except MissingError:  # it is damaged, which the code that judges the run reports
        return verdict
    return None if record is not None and record.own_script else verdict


def read_prediction(paths: WorkspacePaths, exercise: Exercise, record: RunRecord) -> PredictionResult | None:
    """Return the learner's prediction for a run, together with the measured value.

    Return None if there is no prediction, or if the course now asks a different question. Raises MissingError for a damaged
    file.
    """
    from gpucourse.grading.answers import compare
    from gpucourse.grading.checks import is_gpu_evidence

    question, prediction = exercise.predict, record.prediction
    if question is None or prediction is None or prediction.id != question.id or record.own_script:
        return None
    documents = material(paths, record) if record.is_evidence else None
    gpu = documents is not None and is_gpu_evidence(documents["metrics"], record.mode)
    try:
        return compare(question, prediction.answer, documents, on_gpu=gpu)
    except ValueError:  # the course now asks another question under this name
        return None


def material(paths: WorkspacePaths, record: RunRecord) -> dict[str, Mapping[str, Any]]:
    """Return the data for checks and questions of a run: its metrics, plan and record. Raises MissingError for a damaged
    file."""
    files = runs.files_of(paths, record)
    documents: dict[str, Mapping[str, Any]] = {}
    for name, path, read in (("metrics", files.metrics, read_metrics), ("plan", files.plan, read_json)):
        try:
            document = read(path)
        except MissingError as error:
            raise MissingError(
                error.what,
                hint=f"the run's own copy may be intact: ls {files.outputs}/*; "
                f"or run it again: gpucourse run {record.exercise}",
            ) from error
        documents[name] = document if isinstance(document, dict) else {}
    nodes = record.slurm.nodes if record.slurm else len(record.nodes)  # under Slurm, the nodes of each job
    documents["plan"] = {**documents["plan"], "world_size": record.world_size, "nodes": nodes}
    documents["run"] = {"state": record.state, "nodes": record.nodes, "world_size": record.world_size}
    return documents


def judge_own_checks(context: Context, record: RunRecord) -> ExerciseVerdict:
    """Return the verdict of a learner's own checks on a run of their script.

    Raises MissingError if a file of the run is damaged.
    """
    from gpucourse.course.own_checks import load_own_checks
    from gpucourse.grading.checks import evaluate

    documents = material(context.paths, record)
    _, usual = context.catalog.exercise(record.exercise)
    checks = load_own_checks(record.checks, runs.files_of(context.paths, record).record)
    script = usual.model_copy(update={"id": record.subject, "checks": checks})
    metrics, plan, run = documents["metrics"], documents["plan"], documents["run"]
    return evaluate(script, metrics, plan, run, mode=record.mode, run_id=record.id)


def _judge_groups(exercise: Exercise, record: RunRecord) -> tuple[CheckResult, ...]:
    """Return a failed check if the ranks did not form the planned process groups.

    This matters only if a check of the exercise uses the number of ranks.
    """
    about_all = any(check.comparison[1] == "plan.world_size" for check in exercise.checks)
    if not record.split_world or not about_all:
        return ()
    observed = record.split_world
    target = f"one process group of {record.world_size} ranks"
    hint = "init_process_group, once on every rank, with the RANK and WORLD_SIZE that torchrun sets"
    title = "All ranks are in one process group"
    check = CheckResult(
        id="one-group", title=title, verdict="failed", evidence="logic", observed=observed, expected=target, hint=hint
    )
    return (check,)


_NEWER = "not measured: this check is newer than the run"


def _list_judged_checks(paths: WorkspacePaths, record: RunRecord) -> set[str]:
    """Return the ids of the checks by which a run was judged before. The set is empty if the run has no verdict yet, or a
    damaged one."""
    try:
        stored = read_record(runs.files_of(paths, record).verdict, ExerciseVerdict)
    except MissingError:
        return set()
    return {check.id for check in stored.checks if check.observed != _NEWER} if stored else set()


def _leave_out(check: CheckResult) -> CheckResult:
    return replace(check, verdict="not_measured", observed=_NEWER, hint="run the exercise again")


def verdict_on(context: Context, exercise: Exercise, record: RunRecord) -> ExerciseVerdict:
    """Return the verdict of an exercise's current checks on one run, with the results of the learner's parts after the run.

    A check that the course did not have yet when the run was judged counts as not measured if the run lacks its value. Nothing
    is written, and no code of the learner runs. Raises MissingError if a file of the run is damaged.
    """
    from gpucourse.grading.checks import evaluate, overall

    documents = material(context.paths, record)
    metrics, plan, run = documents["metrics"], documents["plan"], documents["run"]
    verdict = add_stored_parts(
        context, exercise, record, evaluate(exercise, metrics, plan, run, mode=record.mode, run_id=record.id)
    )
    stored_ids = _list_judged_checks(context.paths, record)
    judged = (
        _leave_out(check) if check.verdict == "error" and stored_ids and check.id not in stored_ids else check
        for check in verdict.checks
    )
    checks = (*judged, *_judge_groups(exercise, record))
    return replace(verdict, verdict=overall(checks), checks=checks)
