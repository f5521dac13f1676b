"""`break --how code`: a copy of an exercise with an error that occurs in real benchmarks. The learner finds and repairs it.

The repaired copy is run and judged.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.context import Context
from gpucourse.course.part_files import name_fault_judge
from gpucourse.errors import MissingError, UsageError
from gpucourse.judge.client import Judge, JudgeAnswer
from gpucourse.model.diagnosis import Diagnosis
from gpucourse.model.drill import CodeDiagnosis, CodeDrill, CodeDrills
from gpucourse.model.manifest import CodeFault, Exercise, Module
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs.parts import read_part_results
from gpucourse.runs.resolve import RunRequest, resolve
from gpucourse.runs.results import verdict_on
from gpucourse.runs.run import Faults, RunResult, run
from gpucourse.storage import storing, write_text
from gpucourse.units import now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.files import copy_file, read_metrics, read_record, write_record
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.course.catalog import Catalog

LIMIT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class JudgedDiagnosis:
    """A diagnosis that was judged.

    `fault`: the fault with its explanation, if the diagnosis is right.
    `hint`: a hint, if the diagnosis is wrong.
    """

    right: bool
    fault: CodeFault | None
    hint: str
    copy: Path


@dataclass(frozen=True, kw_only=True)
class Repair:
    """A repaired copy that was run and judged.

    `verdict`: the checks of its run.
    `judged`: the verdict of the fault's judge on the copy.
    """

    record: RunRecord
    verdict: ExerciseVerdict | None
    judged: JudgeAnswer | None

    @property
    def is_right(self) -> bool:
        """Return whether the fault is gone and the exercise passes its checks."""
        checks = self.verdict.verdict if self.verdict else "failed"
        return self.judged is not None and self.judged.word == "passed" and checks not in {"failed", "error"}


def list_faults(modules: Iterable[Module]) -> dict[str, CodeFault]:
    """Return every code fault of these modules by its id. The learner chooses from those of one module."""
    return {fault.id: fault for module in modules for item in module.exercises for fault in item.faults}


def break_code(context: Context, run_request: RunRequest, fault_id: str | None = None) -> RunResult:
    """Put a fault into a copy of the exercise, run the copy, and return the result.

    If `fault_id` is None, choose a fault at random, preferably one that has never been found. Raises UsageError if the course
    has no fault for this exercise, and the errors of `run`.
    """
    _, exercise = context.catalog.exercise(run_request.exercise)
    if not exercise.faults:
        ids = sorted({item.id for course_module in context.catalog.modules for item in course_module.exercises if item.faults})
        raise UsageError(
            f"{exercise.id} has no faults in code to find",
            hint=f"these have: {', '.join(ids)}" if ids else "gpucourse list",
        )
    fault = _choose_fault(exercise, _read_drills(context.paths, exercise), fault_id)
    folder = _write_copy(context, exercise, fault)

    def keep_record(plan: LaunchPlan) -> tuple[LaunchPlan, Faults]:
        history = _read_drills(context.paths, exercise)
        history.drills.append(CodeDrill(fault=fault.id, run=plan.run_id))
        write_record(context.paths.drill(exercise.id), history)
        return plan, {}

    return run(context, resolve(context, replace(run_request, copies=folder)), inject_faults=keep_record)


def is_open_drill(paths: WorkspacePaths, record: RunRecord) -> bool:
    """Return whether a run executed a copy of an exercise with a code fault that has not been found yet."""
    return record.drill and not record.repair and record.verdict != "passed" and not paths.drill(record.id).exists()


def is_newest_drill(context: Context, exercise_id: str) -> bool:
    """Return whether the newest drill of an exercise has a fault in its code."""
    _, exercise = context.catalog.exercise(exercise_id)
    drills = [record for record in runs.every(context.paths, exercise.id) if record.drill]
    return bool(drills) and not context.paths.drill(drills[-1].id).exists()


def diagnose_code(context: Context, exercise_id: str, word: str) -> JudgedDiagnosis:
    """Return the judgement of the learner's diagnosis of the fault in the newest copy.

    Store it in the record of the drill and of its run.

    Raises MissingError if there is no copy.
    """
    _, exercise = context.catalog.exercise(exercise_id)
    history, drill, fault = _find_newest_drill(context.paths, exercise)
    right = word == fault.id
    drill.diagnoses.append(CodeDiagnosis(fault=word, right=right, at=now_utc()))
    write_record(context.paths.drill(exercise.id), history)
    _record_diagnosis(context.paths, exercise.id, drill, fault)
    wrong_count = sum(not diagnosis.right for diagnosis in drill.diagnoses)
    hint = "" if right else fault.hints[min(wrong_count, len(fault.hints)) - 1]
    return JudgedDiagnosis(
        right=right, fault=fault if right else None, hint=hint, copy=context.paths.broken_copy(exercise.id) / fault.file
    )


def _record_diagnosis(paths: WorkspacePaths, exercise_id: str, drill: CodeDrill, fault: CodeFault) -> None:
    """Store in the record of the drill's run whether the fault was found. Do nothing if the learner has deleted the run."""
    record = runs.read(paths, exercise_id, drill.run)
    if record is None:
        return
    is_found = any(diagnosis.right for diagnosis in drill.diagnoses)
    record.verdict = "passed" if is_found else "failed"
    if is_found:
        command = f"gpucourse break {exercise_id} --repaired"
        record.diagnoses = [Diagnosis(symptom=fault.id, title=fault.title, why=fault.explanation, next=command)]
    runs.save(paths, record)


def judge_repair(context: Context, run_request: RunRequest) -> Repair:
    """Run the copy that the learner repaired, and return it, judged by the exercise's checks and by the judge of its fault.

    Raises MissingError if there is no copy or one of its files is gone, and the errors of `run`.
    """
    _, exercise = context.catalog.exercise(run_request.exercise)
    _, drill, fault = _find_newest_drill(context.paths, exercise)
    folder = context.paths.broken_copy(exercise.id)
    if missing := [name for name in context.catalog.sources(exercise) if not (folder / name).is_file()]:
        raise MissingError(f"{folder / missing[0]} is gone", hint=f"a new copy: gpucourse break {exercise.id} --how code")
    resolved = resolve(context, replace(run_request, copies=folder))
    result = run(context, resolved, is_repair=True)
    record = result.record
    ended_well = all(node_exit.code == 0 for node_exit in record.node_exits)
    metrics = read_metrics(runs.files_of(context.paths, record).metrics) if ended_well else None
    verdict = verdict_on(context, exercise, record) if metrics else None
    fault_answer = _judge_fault(context.catalog, exercise, fault, folder, metrics) if metrics else None
    is_named = any(diagnosis.right for diagnosis in drill.diagnoses)
    if fault_answer is not None and fault_answer.word == "failed" and not is_named:  # the judge's words name the fault
        fault_answer = JudgeAnswer(word="open", says=f"name the fault first (gpucourse check {exercise.id} --diagnosis WORD)")
    repair = Repair(record=record, verdict=verdict, judged=fault_answer)
    record.verdict = "passed" if repair.is_right else "failed"
    runs.save(context.paths, record)
    if repair.is_right:
        history = _read_drills(context.paths, exercise)
        history.drills[-1].repaired = record.id
        write_record(context.paths.drill(exercise.id), history)
    return repair


def _judge_fault(catalog: Catalog, exercise: Exercise, fault: CodeFault, folder: Path, metrics: dict[str, Any]) -> JudgeAnswer:
    judge_file = catalog.judge(exercise, name_fault_judge(fault))
    with Judge() as judge:
        return judge.judge(judge_file, folder / fault.file, torch=fault.torch, limit_s=LIMIT_S, path=(folder,), metrics=metrics)


def _choose_fault(exercise: Exercise, history: CodeDrills, fault_id: str | None) -> CodeFault:
    if fault_id is not None:
        return next(fault for fault in exercise.faults if fault.id == fault_id)
    solved = {drill.fault for drill in history.drills if drill.repaired}
    return secrets.choice([fault for fault in exercise.faults if fault.id not in solved] or list(exercise.faults))


def _write_copy(context: Context, exercise: Exercise, fault: CodeFault) -> Path:
    """Copy the course's own files and the learner's parts that have passed, and put the fault into the copy. Return the copy's
    folder. An existing copy is kept under `kept/`."""
    folder = context.paths.broken_copy(exercise.id)
    if folder.is_dir():
        aside = context.paths.broken_copy(exercise.id, suffix=f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}")
        with storing(aside):
            aside.parent.mkdir(parents=True, exist_ok=True)
            folder.replace(aside)
    passed = {result.id for result in read_part_results(context, exercise) if result.verdict == "passed"}
    parts = {part.file: context.paths.yours_file(exercise.id, part.file) for part in exercise.yours if part.id in passed}
    for name, place in context.catalog.sources(exercise).items():
        own_file = None if name == fault.file else parts.get(name)
        copy_file(own_file or context.folders.exercises / place, folder / name)
    target = folder / fault.file
    write_text(target, target.read_text(encoding="utf-8").replace(fault.was, fault.becomes, 1))
    return folder


def _read_drills(paths: WorkspacePaths, exercise: Exercise) -> CodeDrills:
    return read_record(paths.drill(exercise.id), CodeDrills) or CodeDrills(exercise=exercise.id)


def _find_newest_drill(paths: WorkspacePaths, exercise: Exercise) -> tuple[CodeDrills, CodeDrill, CodeFault]:
    history = _read_drills(paths, exercise)
    drill = history.drills[-1] if history.drills else None
    fault = next((fault for fault in exercise.faults if drill and fault.id == drill.fault), None)
    if drill is None or fault is None:
        raise MissingError(
            f"there is no copy of {exercise.id} with a fault in its code", hint=f"gpucourse break {exercise.id} --how code"
        )
    return history, drill, fault
