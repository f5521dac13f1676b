"""`grade --rerun`: repeats the runs of a bundle on simulated nodes of this computer, and judges the handed-in parts again.

A bundle comes from outside. Its code runs in a temporary workspace, with the limits of every run, a separate home folder, and
no credentials of this environment. It is still the learner's code, and runs with the rights of the person who types the
command.
"""

from __future__ import annotations

import shutil
import site
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, UnknownName
from gpucourse.grading.checks import is_gpu_evidence
from gpucourse.grading.repeats import RepeatedFigure, compare_figures
from gpucourse.learning import evidence
from gpucourse.learning.review.commands import type_command
from gpucourse.model.event import Note
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import PartResult, choose_needed
from gpucourse.outside.files import file_inside
from gpucourse.outside.names import OutsideError
from gpucourse.runs.parts import read_part_results
from gpucourse.runs.results import material, verdict_on
from gpucourse.storage import storing, writing
from gpucourse.workspace import runs
from gpucourse.workspace.files import copy_file, read_metrics
from gpucourse.workspace.locate import personal_cache
from gpucourse.workspace.paths import RunPaths, WorkspacePaths
from gpucourse.workspace.trust import TRUST_LIST, config_folder

SETTINGS = "log_limit: 64 MiB\noutput_limit: 1 GiB\n"
"""The limits for each rank and each node in a workspace that runs another person's scripts."""
_KEPT = {
    "PATH", "LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV",
    "GPUCOURSE_TERRAFORM", "GPUCOURSE_COURSE", "TF_PLUGIN_MIRROR", "TF_PLUGIN_CACHE_DIR",
}  # fmt: skip
_MISSING = 3

RerunVerdict = Literal["agrees", "differs", "skipped"]


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """One exercise after its rerun, with its parts judged again.

    `run`: the run in the bundle. It is empty if no run counts.
    `why`: the differences other than figures, or why the run was left out.
    """

    exercise: str
    run: str
    verdict: RerunVerdict
    figures: tuple[RepeatedFigure, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class _Place:
    """An open bundle, and the workspace where its runs are repeated."""

    bundle: Context
    paths: WorkspacePaths
    environment: Mapping[str, str]
    original: bool
    skipped: dict[str, str] = field(default_factory=dict)

    def types(self, *words: str) -> tuple[int, dict[str, Any]]:
        return type_command(self.environment, *words)


_Due = Sequence[tuple[Exercise, RunRecord | None]]


def rerun(bundle: Context, exercise_ids: Sequence[str], *, original: bool = False) -> Iterator[Rerun]:
    """Repeat the run that counts for each exercise of a bundle, and judge the handed-in parts again. Yield each exercise when
    it is done.

    `exercise_ids`: repeat only these exercises and the exercises that they build on. If it is empty, repeat all.
    `original`: use the course's own scripts instead of the learner's edited ones.

    Raises UnknownName for an unknown exercise. At the end, nothing keeps running, and the workspace is removed.
    """
    choices = _choose(bundle, exercise_ids)
    with tempfile.TemporaryDirectory(prefix="gpucourse-rerun-") as folder:
        paths = WorkspacePaths(Path(folder) / "workspace")
        with writing(paths.settings) as target:
            target.write(SETTINGS.encode())
        home = make_home(bundle.environ, Path(folder) / "home")
        place = _Place(bundle, paths, make_environment(bundle.environ, paths, home), original)
        try:
            for module in bundle.catalog.modules:
                due_runs = {exercise.id: (exercise, record) for exercise, record in choices if exercise in module.exercises}
                for repeated in _rerun_module(place, module, tuple(due_runs.values())):
                    yield _judge_parts(place, due_runs[repeated.exercise][0], repeated)
        finally:
            if paths.deployments.is_dir():
                place.types("destroy", "--all", "--yes", "--discard")


def _choose(bundle: Context, exercise_ids: Sequence[str]) -> _Due:
    """Return the exercises to run or to judge, in the course's order, each with the bundle's run that counts for it."""
    names = set(exercise_ids)
    for name in exercise_ids:
        names |= set(bundle.catalog.exercise(name)[1].builds_on)
    choices: list[tuple[Exercise, RunRecord | None]] = []
    for exercise in (exercise for exercise in bundle.catalog.exercises if not exercise_ids or exercise.id in names):
        try:
            record = evidence.find_counting_run(bundle.paths, exercise)
        except GpucourseError:  # a record that cannot be read: the grade says so
            record = None
        if record is not None or _list_handed_in(bundle, exercise):
            choices.append((exercise, record))
    missing = [name for name in exercise_ids if name not in {exercise.id for exercise, _ in choices}]
    if missing:
        raise UnknownName("run or part of", missing[0], [exercise.id for exercise, _ in choices])
    return choices


def _list_handed_in(bundle: Context, exercise: Exercise) -> tuple[PartResult, ...]:
    """Return the handed-in parts that have a judge and a known judged file. If parts are alternatives to each other, return
    only one of them."""
    judged_ids = {part.id for part in exercise.yours if part.judge}
    try:
        results = choose_needed(exercise.yours, read_part_results(bundle, exercise))
    except GpucourseError:  # a record that cannot be read: the grade says so
        return ()
    return tuple(result for result in results if result.sha256 and result.id in judged_ids)


def make_home(environ: Mapping[str, str], home: Path) -> Path:
    """Make and return a home folder for another person's scripts.

    It contains the reviewer's list of trusted folders and a link to Terraform's downloads, but no key, no credential and no
    configuration.
    """
    trusted = config_folder(environ) / TRUST_LIST
    home.mkdir()
    config, cache = config_folder({"HOME": str(home)}), personal_cache({"HOME": str(home)})
    for folder in (config, cache.parent):
        folder.mkdir(parents=True)
    if trusted.is_file():
        copy_file(trusted, config / TRUST_LIST)
    own_cache = personal_cache(environ).absolute()
    with storing(own_cache):
        own_cache.mkdir(parents=True, exist_ok=True)
    cache.symlink_to(own_cache)
    return home


def make_environment(environ: Mapping[str, str], paths: WorkspacePaths, home: Path) -> dict[str, str]:
    """Return the environment variables for the commands. They suffice to start a command, but contain no credentials."""
    passed_on = {name: value for name, value in environ.items() if name in _KEPT}
    packages = {"PYTHONUSERBASE": site.getuserbase()} if site.ENABLE_USER_SITE else {}  # from pip install --user
    return {**passed_on, **packages, "HOME": str(home), "GPUCOURSE_WORKSPACE": str(paths.root)}


def _rerun_module(place: _Place, module: Module, due_runs: _Due) -> Iterator[Rerun]:
    repeatable_runs: list[tuple[Exercise, RunRecord]] = []
    for exercise, record in due_runs:
        if record is None:
            yield Rerun(exercise=exercise.id, run="", verdict="skipped", why="no run that counts")
        elif obstacle := _find_obstacle(place, module, exercise, record):
            yield Rerun(exercise=exercise.id, run=record.id, verdict="skipped", why=obstacle)
        else:
            repeatable_runs.append((exercise, record))
    if not repeatable_runs:
        return
    nodes = max(module.lab.local.nodes, *(_count_nodes(record) for _, record in repeatable_runs))
    place.bundle.watch(Note(text=f"module {module.id}: deploying simulated nodes"))
    code, document = place.types("deploy", module.id, "--target", "local", "--yes", "--nodes", str(nodes))
    if code:
        for exercise, record in repeatable_runs:
            yield Rerun(exercise=exercise.id, run=record.id, verdict="skipped", why=f"no lab here: {_say_error(document)}")
        return
    for exercise, record in repeatable_runs:
        place.bundle.watch(Note(text=f"{exercise.id}: running again what {record.id} ran"))
        yield _rerun_exercise(place, exercise, record)
    place.types("destroy", module.id, "--yes", "--discard")


def _find_obstacle(place: _Place, module: Module, exercise: Exercise, record: RunRecord) -> str:
    """Return why an exercise cannot be repeated on simulated nodes, or an empty string if it can."""
    if exercise.launch.traits.is_terminal:
        return "it needs a session at the learner's own terminal"
    try:
        gpu = is_gpu_evidence(material(place.bundle.paths, record)["metrics"], record.mode)
    except GpucourseError as error:
        return error.what
    if record.handed_on:
        return f"it used the learner's own variables, whose values are not stored: {', '.join(record.handed_on)}"
    if gpu:
        return "it was measured on a GPU; simulated nodes have none"
    if _count_nodes(record) > module.lab.local.max_nodes:
        return f"it ran on {_count_nodes(record)} nodes; at most {module.lab.local.max_nodes} can be simulated"
    files = runs.files_of(place.bundle.paths, record)
    parts = {part.file for part in exercise.yours}
    for name in record.edited if not place.original else ():
        if name not in parts and name in place.bundle.catalog.sources(exercise):
            try:
                file_inside(files.folder, f"edited/{name}")
            except OutsideError:
                return f"{name} was edited but is not in the bundle"
    return ""


def _count_nodes(record: RunRecord) -> int:
    return record.slurm.nodes if record.slurm else len(record.nodes)


def _rerun_exercise(place: _Place, exercise: Exercise, record: RunRecord) -> Rerun:
    _lay_out(place, exercise, record)
    nodes = _count_nodes(record)
    nodes_option = () if exercise.launch.traits.by_slurm and nodes == exercise.launch.nodes else ("--nodes", str(nodes))
    code, document = place.types(
        "run", exercise.id, *nodes_option, *list_settings(exercise, record), *list_start_options(record)
    )
    run = document.get("run") or {}
    if code == _MISSING and not run:
        return Rerun(exercise=exercise.id, run=record.id, verdict="skipped", why=_say_error(document))
    if run.get("state") != "succeeded":
        reason = f"it could not be repeated: {_say_error(document) or run.get('state') or 'no run'}"
        return Rerun(exercise=exercise.id, run=record.id, verdict="differs", why=reason)
    files = RunPaths(Path(document["folder"]))
    plan = {"world_size": run.get("world_size"), "nodes": len(run.get("nodes") or ())}
    try:
        original = material(place.bundle.paths, record)
        repeated = {"metrics": read_metrics(files.metrics), "plan": plan, "run": run}
        figures = tuple(compare_figures(exercise, original, repeated))
        reason = compare_checks(place.bundle, exercise, record, (document.get("verdict") or {}).get("checks") or ())
    except GpucourseError as error:
        return Rerun(exercise=exercise.id, run=record.id, verdict="differs", why=error.what)
    differs = reason or any(figure.verdict == "differs" for figure in figures)
    return Rerun(exercise=exercise.id, run=record.id, verdict="differs" if differs else "agrees", figures=figures, why=reason)


def _judge_parts(place: _Place, exercise: Exercise, repeated: Rerun) -> Rerun:
    """Judge the handed-in parts again. Return the repeated exercise with their results."""
    handed_in = _list_handed_in(place.bundle, exercise)
    if not handed_in:
        return repeated
    place.bundle.watch(Note(text=f"{exercise.id}: judging again what is handed in"))
    places = place.bundle.catalog.part_places(exercise)
    shutil.rmtree(place.paths.exercises, ignore_errors=True)
    for result in handed_in:
        copy_file(place.bundle.paths.yours_file(exercise.id, result.file), place.paths.exercises / places[result.id])
    _, document = place.types("try", exercise.id)
    by_id = {str(part.get("id")): part for part in document.get("parts") or ()}
    if not by_id:
        return replace(repeated, why="; ".join(filter(None, (repeated.why, f"parts not judged: {_say_error(document)}"))))
    figures = tuple(compare_part(exercise, result, by_id.get(result.id, {})) for result in handed_in)
    differs = repeated.verdict == "differs" or any(figure.verdict == "differs" for figure in figures)
    verdict: RerunVerdict = "differs" if differs else repeated.verdict if repeated.run else "agrees"
    return replace(repeated, verdict=verdict, figures=(*repeated.figures, *figures))


def compare_part(exercise: Exercise, result: PartResult, repeated: Mapping[str, Any]) -> RepeatedFigure:
    """Return the bundle's result for a part beside the judge's result on this computer, from `try --json`. A part that failed
    because of a run's checks may pass its judge."""
    word = str(repeated.get("verdict") or "not judged")
    decided_by_check = result.way in next(part.checks for part in exercise.yours if part.id == result.id)
    expectation = "failed" if result.verdict == "failed" and not decided_by_check else "passed"
    return RepeatedFigure(
        value=f"part {result.id}",
        bundle=result.verdict,
        again=word,
        verdict="agrees" if word == expectation else "differs",
        note=str(repeated.get("says") or "")[:300] if word != expectation else "",
    )


def _lay_out(place: _Place, exercise: Exercise, record: RunRecord) -> None:
    """Put the files of this run, and no other files of the learner, into the workspace's exercises folder."""
    shutil.rmtree(place.paths.exercises, ignore_errors=True)
    files = runs.files_of(place.bundle.paths, record)
    sources = place.bundle.catalog.sources(exercise)
    places = place.bundle.catalog.part_places(exercise)
    targets = {f"yours/{part.file}": places[part.id] for part in exercise.yours}
    if not place.original:
        targets |= {f"edited/{name}": sources[name] for name in record.edited if name in sources}
    for name, target in targets.items():
        try:
            copy_file(file_inside(files.folder, name), place.paths.exercises / target)
        except OutsideError:  # the run left this part out, so the course's file is used
            continue


def list_settings(exercise: Exercise, record: RunRecord) -> list[str]:
    """Return the parameters of a run as --set options. Parameters that the exercise does not have are left out."""
    words = []
    for parameter in exercise.parameters:
        value = record.parameters.get(parameter.name)
        if isinstance(value, bool | int | float | str):
            words += ["--set", f"{parameter.name}={str(value).lower() if isinstance(value, bool) else value}"]
    return words


def list_start_options(record: RunRecord) -> list[str]:
    """Return the variables and the torchrun options of a run as command-line options."""
    variables = [word for name, value in record.environment.items() for word in ("--env", f"{name}={value}")]
    return [*variables, *(["--torchrun", record.torchrun] if record.torchrun else [])]


def compare_checks(bundle: Context, exercise: Exercise, record: RunRecord, repeated: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the checks without a GPU whose results differ from the bundle's, or an empty string if none
    do.

    `repeated`: the checks of the new run, as in `run --json`. These may include failed checks that the bundle's run does not
    have, such as `one-group`.
    """
    words = {str(check.get("id")): str(check.get("verdict")) for check in repeated}
    original = verdict_on(bundle, exercise, record).checks
    sentences = [
        f"check {check.id}: {check.verdict} in the bundle, {words.get(check.id, 'passed')} when rerun"
        for check in original
        if check.evidence == "logic"
        and check.verdict in {"passed", "failed"}
        and words.get(check.id, "passed") != check.verdict
    ]
    names = {check.id for check in original}
    new = [check for check in repeated if check.get("evidence") == "logic" and str(check.get("id")) not in names]
    sentences += [
        f"check {check['id']}: not in the bundle, failed when rerun" for check in new if check.get("verdict") == "failed"
    ]
    return "; ".join(sentences)


def _say_error(document: Mapping[str, Any]) -> str:
    error = document.get("error")
    return str(error.get("what") or "")[:300] if isinstance(error, Mapping) else ""
