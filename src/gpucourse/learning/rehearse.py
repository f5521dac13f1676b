"""`dev check`: checks a course for errors and, with `--run`, runs its exercises on simulated nodes.

It runs the commands that learners use, each in a separate process, in a temporary workspace. An exercise with a solution must
fail as delivered, and must pass with the solution in place. With the edit of a mutation, the mutation's check must fail, and no
other check may fail.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucourse.course.catalog import Catalog, load
from gpucourse.course.lint import lint
from gpucourse.course.locate import OVERRIDE, CourseFolders, course_in, find_course, find_named_course
from gpucourse.course.part_files import SOLUTIONS, find_missing_files, name_fault_judge
from gpucourse.course.rules import SHARED
from gpucourse.errors import GpucourseError, UsageError
from gpucourse.grading.answers import compare
from gpucourse.grading.values import Unreadable, read
from gpucourse.judge.client import Judge
from gpucourse.judge.proof import prove, prove_fault
from gpucourse.learning.review.commands import type_command
from gpucourse.model.event import Note, Watcher
from gpucourse.model.fields import is_number
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import Rehearsal
from gpucourse.runs.code_drill import LIMIT_S
from gpucourse.workspace.files import copy_file, read_metrics, read_record
from gpucourse.workspace.paths import RunPaths, WorkspacePaths
from gpucourse.workspace.trust import require_course

_HINT = "name a folder that contains modules/ and exercises/: gpucourse dev check DIR"


@dataclass(frozen=True, kw_only=True)
class CheckedCourse:
    """A course, all its errors, and the results of its exercises."""

    catalog: Catalog
    complaints: list[str]
    rehearsed: list[Rehearsal]


@dataclass(frozen=True)
class RehearsalPlace:
    """A course, a workspace for it, the watcher of events, and the judge of the learner's parts."""

    catalog: Catalog
    root: Path
    paths: WorkspacePaths
    watch: Watcher
    judge: Judge


def check_course(folder: Path | None, *, run: bool, modules: Sequence[str], watch: Watcher) -> CheckedCourse:
    """Check the course in `folder`, or the current course, and return its errors.

    With `run`, also run the exercises of `modules`, or all if it is empty.

    Raises UntrustedFolder if it would run code of a course that other users may write to. Raises UsageError for an unknown
    module.
    """
    environ = {OVERRIDE: str(folder)} if folder is not None else os.environ
    if run and (course := find_named_course(environ)) is not None:  # without `run`, nothing in the course is executed
        require_course(course, os.environ)
    catalog = load(find_chosen_course(folder))
    complaints = lint(catalog)
    rehearsed = list(rehearse(catalog, modules, watch)) if run and not catalog.errors else []
    complaints += [complaint for exercise in rehearsed for complaint in exercise.complaints]
    return CheckedCourse(catalog=catalog, complaints=complaints, rehearsed=rehearsed)


def find_chosen_course(folder: Path | None) -> CourseFolders:
    """Return the course in `folder`, or the current course if `folder` is None. Raises UsageError or MissingError if a
    part of it is missing.
    """
    return find_course(os.environ) if folder is None else course_in(folder, hint=_HINT)


def rehearse(catalog: Catalog, module_ids: Sequence[str], watch: Watcher) -> Iterator[Rehearsal]:
    """Run every exercise of the modules in `module_ids` (or of all modules), and yield each result as soon as it is ready.

    Raises UsageError for an unknown module. Nothing keeps running afterwards.
    """
    modules = [catalog.module(module_id) for module_id in module_ids] if module_ids else list(catalog.modules)
    folders = catalog.folders
    if folders.modules.parent != folders.exercises.parent:
        raise UsageError(f"{folders.modules} and {folders.exercises} are not side by side", hint="gpucourse dev check DIR")
    with tempfile.TemporaryDirectory(prefix="gpucourse-dev-") as place:
        root = Path(place) / "workspace"
        stage = RehearsalPlace(catalog, folders.modules.parent, WorkspacePaths(root), watch, Judge())
        try:
            for module in modules:
                yield from _module(stage, module)
        finally:
            stage.judge.close()
            if stage.paths.deployments.is_dir():
                _type(stage, "destroy", "--all", "--yes", "--discard")


def _module(stage: RehearsalPlace, module: Module) -> Iterator[Rehearsal]:
    stage.watch(Note(text=f"module {module.id}: deploying simulated nodes"))
    node_count = max([module.lab.local.nodes, *(exercise.launch.nodes for exercise in module.exercises)])
    code, document = _type(
        stage, "deploy", module.id, "--target", "local", "--yes", *_nodes(node_count, module.lab.local.nodes)
    )
    if code:
        reason = _find_reason(document)
        complaint = f"{stage.catalog.manifest_label(module)}: lab.local: {reason}"
        # A program that is missing on this machine (Slurm, Terraform) is not a fault of the course.
        yield Rehearsal(exercise=module.id, skipped=reason if code == 3 else "", complaints=() if code == 3 else (complaint,))
        return
    for exercise in module.exercises:
        stage.watch(Note(text=f"{exercise.id}: running"))
        try:
            yield _exercise(stage, module, exercise)
        except GpucourseError as error:
            yield Rehearsal(
                exercise=exercise.id, complaints=(f"{stage.catalog.manifest_label(module)}: {exercise.id}: {error.what}",)
            )
    _type(stage, "destroy", module.id, "--yes", "--discard")


def _exercise(stage: RehearsalPlace, module: Module, exercise: Exercise) -> Rehearsal:
    if exercise.launch.traits.is_terminal:
        return Rehearsal(exercise=exercise.id, skipped="it needs a session at the author's own terminal")
    solutions = _solutions(stage, exercise)
    nodes = () if exercise.launch.traits.by_slurm else _nodes(exercise.launch.nodes, 0)
    code, document = _type(stage, "run", exercise.id, *nodes)
    if code == 3:
        return Rehearsal(exercise=exercise.id, skipped=_find_reason(document))
    place = f"{stage.catalog.manifest_label(module)}: {exercise.id}"
    run, verdict = document.get("run") or {}, document.get("verdict") or {}
    complaints = [*_complaints(document, hole=bool(solutions)), *prove_parts(stage, exercise)]
    if solutions:
        if run.get("state") == "succeeded" and not _open(verdict):
            complaints.append("every check passes with the files as delivered, although there is a solution")
        for name, source in solutions.items():
            copy_file(source, stage.paths.exercises / name)
        _, solved = _type(stage, "run", exercise.id, *nodes)
        complaints += (f"with its solution: {line}" for line in _complaints(solved, hole=False))
        unmeasured = _open(solved.get("verdict") or {}, wanted_verdict="not_measured", about=_list_part_checks(exercise))
        complaints += (f"with its solution: {line}" for line in unmeasured)
        document, run, verdict = solved, solved.get("run") or {}, solved.get("verdict") or {}
    if not complaints:  # otherwise, checks may fail for another reason than the edit
        complaints += _prove_mutations(stage, exercise, nodes)
    if solutions:
        _type(stage, "reset", exercise.id)
    if run.get("state") == "succeeded":
        complaints += _evidence(exercise, RunPaths(Path(document["folder"])), run, whole=not _open(verdict))
    record = _read_record(document)
    return Rehearsal(
        exercise=exercise.id,
        verdict=verdict.get("verdict"),
        seconds=max((end.seconds or 0.0 for end in record.node_exits), default=None) if record else None,
        complaints=tuple(f"{place}: {line}" for line in dict.fromkeys(complaints)),
    )


def _prove_mutations(stage: RehearsalPlace, exercise: Exercise, nodes: Sequence[str]) -> Iterator[str]:
    """Run the exercise with the edit of each mutation. Yield a complaint for each run that did not succeed, and for each run in
    which the mutation's check passed or another check failed."""
    places = stage.catalog.sources(exercise)
    for question in exercise.questions:
        if question.kind != "mutation" or question.edit not in places:  # lint reports an unknown file
            continue
        course_file, copy = (root / places[question.edit] for root in (stage.catalog.folders.exercises, stage.paths.exercises))
        text = course_file.read_text(encoding="utf-8")
        copy.write_text(text.replace(str(question.was), str(question.becomes)), encoding="utf-8")
        _, document = _type(stage, "run", exercise.id, *nodes, "--expect-red", str(question.check))
        copy_file(course_file, copy)
        if (document.get("run") or {}).get("state") != "succeeded":
            yield f"questions.{question.id}: with its edit, the run does not succeed: {_find_reason(document)}"
            continue
        checks = (document.get("verdict") or {}).get("checks", ())
        red = [check["id"] for check in checks if check["verdict"] in {"failed", "error"}]
        if red != [question.check]:
            outcome = f"{', '.join(red) or 'no check'} failed"
            yield f"questions.{question.id}: with its edit, {outcome}, but only {question.check} should fail"


def prove_parts(stage: RehearsalPlace, exercise: Exercise) -> Iterator[str]:
    """Yield the errors of the judges of parts: on the delivered file, on each solution, and on each wrong version. Then yield
    the errors of the judges of code faults: with the fault, and after each repair."""
    exercises = stage.catalog.folders.exercises
    places = stage.catalog.part_places(exercise)
    for part in exercise.yours:
        file = exercises / places[part.id]
        if part.judge and not find_missing_files(file, stage.catalog.judge_file(exercise, part)):  # lint reports these
            for proof in prove(stage.judge, file, torch=part.torch, limit_s=part.limit, shared=exercises / SHARED):
                if proof.complaint:
                    yield f"yours.{part.id}: {proof.version} {proof.complaint}"
    sources = {name: exercises / place for name, place in stage.catalog.sources(exercise).items()}
    for fault in exercise.faults:
        judge_file, change = stage.catalog.judge(exercise, name_fault_judge(fault)), (fault.was, fault.becomes)
        if fault.file in sources and judge_file.is_file():
            proofs = prove_fault(
                stage.judge, judge_file, fault.file, change, torch=fault.torch, limit_s=LIMIT_S, sources=sources
            )
            yield from (f"faults.{fault.id}: {proof.version} {proof.complaint}" for proof in proofs if proof.complaint)


def _complaints(document: dict[str, Any], *, hole: bool) -> Iterator[str]:
    """Yield what went wrong in the run of an exercise without parts, and every check that did not pass."""
    run = document.get("run") or {}
    if run.get("state") != "succeeded":
        if not hole:
            yield f"does not run on simulated nodes: {_find_reason(document) or run.get('state') or 'no run'}"
        return
    for check in (document.get("verdict") or {}).get("checks", ()):
        if check["verdict"] in {"failed", "error"} and not hole:
            yield f"checks.{check['id']}: {check['verdict']}: {check['observed']}, expected {check['expected']}"


def _list_part_checks(exercise: Exercise) -> frozenset[str] | None:
    """Return the checks of the learner's parts: only these depend on a solution. Return None if the exercise has another kind
    of solution, which may affect every check."""
    return frozenset(check for part in exercise.yours for check in part.checks) if exercise.yours else None


def _open(verdict: dict[str, Any], wanted_verdict: str = "", about: frozenset[str] | None = None) -> list[str]:
    """Return the checks that need no GPU and did not pass. `wanted_verdict` limits the result to one verdict, `about` to these
    ids."""
    open_checks = [
        check
        for check in verdict.get("checks", ())
        if check["evidence"] == "logic"
        and check["verdict"] != "passed"
        and wanted_verdict in {"", check["verdict"]}
        and (about is None or check["id"] in about)
    ]
    return [f"checks.{check['id']}: {check['verdict'].replace('_', ' ')}: {check['observed']}" for check in open_checks]


def _evidence(exercise: Exercise, files: RunPaths, run: dict[str, Any], *, whole: bool) -> Iterator[str]:
    """Yield a complaint for each question that this run cannot answer, for a prediction whose ranges do not contain the
    measurement, and, unless a part is open, for each missing deliverable."""
    plan = {"world_size": run.get("world_size"), "nodes": len(run.get("nodes") or ())}
    evidence = {"metrics": read_metrics(files.metrics) or {}, "plan": plan, "run": run}
    for question in exercise.questions:
        for path in question.reads if question.evidence == "logic" else ():
            try:
                value = read(path, evidence)
            except Unreadable as error:
                yield f"questions.{question.id}: {error}"
                continue
            exact = question.value is not None and not {"tolerance", "tolerance_percent"} & question.model_fields_set
            if not is_number(value):
                advice = "if it needs a GPU, add evidence: gpu"
                yield f"questions.{question.id}: {path} is not a number on simulated nodes; {advice}"
            elif exact and isinstance(value, float) and not value.is_integer():
                yield f"questions.{question.id}: {path} is {value:g}, and has no tolerance (0 if it is exact)"
    prediction = exercise.predict
    if prediction is not None and prediction.ranges and prediction.evidence == "logic":
        result = compare(prediction, "a", evidence, on_gpu=False)
        if result.verdict == "error":
            yield f"predict.{prediction.id}: {prediction.value} {result.measurement}: {result.difference}"
    for deliverable in exercise.deliverables if whole else ():
        if deliverable.evidence == "logic" and not any(files.folder.glob(deliverable.source)):
            yield f"deliverables: the run left no file that matches {deliverable.source} ({deliverable.title})"


def _nodes(count: int, usual: int) -> tuple[str, ...]:
    """Return the option that sets the number of nodes, or no words if `count` is the usual number."""
    return () if count == usual else ("--nodes", str(count))


def _solutions(stage: RehearsalPlace, exercise: Exercise) -> dict[str, Path]:
    """Return the solutions of the files that a run uses, by the name of the file that each replaces."""
    folder = stage.catalog.folders.exercises / stage.catalog.folder_name(exercise) / SOLUTIONS
    places = stage.catalog.part_places(exercise)
    judged_places = [places[part.id] for part in exercise.yours if part.checks]
    names = [*stage.catalog.sources(exercise).values(), *judged_places]
    return {name: folder / Path(name).name for name in names if (folder / Path(name).name).is_file()}


def _type(stage: RehearsalPlace, *words: str) -> tuple[int, dict[str, Any]]:
    """Run a command. Return its exit code and its JSON document."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUCOURSE_") or "TERRAFORM" in name}
    environment = {**environ, "GPUCOURSE_COURSE": str(stage.root), "GPUCOURSE_WORKSPACE": str(stage.paths.root)}
    return type_command(environment, *words)


def _read_record(document: dict[str, Any]) -> RunRecord | None:
    """Return the full record of the run in a command's JSON document, or None without a run."""
    return read_record(RunPaths(Path(document["folder"])).record, RunRecord) if document.get("folder") else None


def _find_reason(document: dict[str, Any]) -> str:
    """Return what happened, from an error document. For a failed run, this is the failed rank, how it ended, and its last line
    of output."""
    if error := document.get("error"):
        return str(error.get("what") or "")
    run, files = document.get("run") or {}, RunPaths(Path(document.get("folder") or ""))
    record = _read_record(document)
    words = [run.get("state"), run.get("error")]
    if record and (first := record.first_failure):
        words.append(f"rank {first.rank} on {first.node} ended with code {first.code}")
        log = files.rank_log(first.node, first.rank)
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
        words.append(next((f"its last line: {line.strip()[:300]}" for line in reversed(lines) if line.strip()), ""))
    return ", ".join(word for word in words if word)
