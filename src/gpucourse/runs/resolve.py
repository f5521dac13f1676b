"""Resolve the learner's command into the exercise, its module, the launcher, the lab, and the kind of the learner's own script.

This is done once, and the result is passed on.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.launch.launcher import Launcher, find_launcher
from gpucourse.launch.own_batch import ScriptKind, read_kind
from gpucourse.model.deployment import Deployment
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.node import Mode
from gpucourse.model.record import GivenPrediction, RunRecord
from gpucourse.model.slurm_settings import SlurmSettings
from gpucourse.units import write_duration
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.paths import WorkspacePaths


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The learner's options after `run`.

    `python_module`: the name by which `python -m` finds the script in the current folder, if the script is started that way.
    """

    exercise: str
    nodes: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    script: Path | None = None
    python_module: str = ""
    launcher: str | None = None
    arguments: tuple[str, ...] = ()
    timeout_s: float | None = None
    target: str | None = None
    gpu: str | None = None
    silence_s: float | None = None
    extra: tuple[Path, ...] = ()
    processes: int | None = None
    prediction: GivenPrediction | None = None
    expected_red: str | None = None
    profile: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    handed_on: tuple[str, ...] = ()  # variables whose values are read on this computer when the run starts
    torchrun: str = ""
    checks: tuple[Mapping[str, object], ...] = ()  # the checks of a learner's own script
    slurm: SlurmSettings = field(default_factory=SlurmSettings)  # they override the settings of a lab on a Slurm cluster
    max_gpu_hours: float | None = None  # a job that may need more is not submitted
    copies: Path | None = None  # a folder with files that replace the learner's files of the same names
    kind: ScriptKind | None = None  # the kind of the script, if the script was read already

    @property
    def place(self) -> str:
        """Return the folder of the run below `runs/`."""
        return runs.script_place(self.script) if self.script else self.exercise

    @property
    def command(self) -> str:
        """Return the command that was typed, reduced to the options that decide which resources are requested."""
        subject = ["--script", str(self.script)] if self.script else [self.exercise]
        words = ["gpucourse", "run", *(["--module", self.python_module] if self.python_module else subject)]
        values = {
            "--launcher": self.launcher,
            "--nodes": self.nodes,
            "--procs": self.processes,
            "--target": self.target,
            "--gpu": self.gpu,
            "--timeout": None if self.timeout_s is None else write_duration(self.timeout_s),
        }
        words += [word for flag, value in values.items() if value is not None for word in (flag, str(value))]
        words += [word for name, value in self.settings.items() for word in ("--set", f"{name}={value}")]
        return shlex.join([*words, *self.slurm.list_words(), *(["--", *self.arguments] if self.arguments else [])])


@dataclass(frozen=True, kw_only=True)
class ResolvedRun:
    """A request, together with everything that it refers to.

    `module`: the module of the exercise.
    `lab`: the module on whose lab the run takes place.
    `deployment`: that lab if it is ready, otherwise the error that says how to deploy it.
    `kind`: the kind of the learner's own script, if one runs instead of the exercise's.
    """

    request: RunRequest
    module: Module
    exercise: Exercise
    launcher: Launcher[Any]
    lab: Module
    deployment: Deployment | MissingError
    kind: ScriptKind | None = None

    def require_deployment(self) -> Deployment:
        """Return the lab. Raises MissingError, which names the command that deploys it, if the lab is not ready."""
        if isinstance(self.deployment, MissingError):
            raise self.deployment
        return self.deployment

    @property
    def is_scheduled(self) -> bool:
        """Return whether the run goes to Slurm, because the launcher needs Slurm or the lab is a cluster."""
        return self.launcher.by_slurm or (isinstance(self.deployment, Deployment) and self.deployment.runs_as_jobs)

    @property
    def is_own_batch(self) -> bool:
        """Return whether the learner's own file is passed to sbatch unchanged."""
        return self.kind is not None and self.launcher.takes_batch_files and (self.kind.is_batch or self.kind.is_shell)


def resolve(context: Context, request: RunRequest) -> ResolvedRun:
    """Return the request, together with everything that it refers to.

    Raises UnknownName and UsageError for a value that no lab accepts, UsageError if the launcher does not support an option,
    and MissingError if no lab of the course fits.
    """
    module, exercise = context.catalog.exercise(request.exercise)
    _check_values(exercise, request)
    launcher = find_launcher(request.launcher or exercise.launch.kind)
    objection = launcher.object_to(torchrun=request.torchrun, handed_on=request.handed_on, profile=request.profile)
    if objection is not None:
        raise objection
    kind = (request.kind or read_kind(request.script)) if request.script else None
    if launcher.by_slurm:
        lab = _find_slurm_module(context, module, request)
    else:
        lab = find_script_lab(context, module, request) if request.script else module
    deployment: Deployment | MissingError
    try:
        deployment = find_deployed_lab(context.paths, lab, target=request.target, gpu=request.gpu)
    except MissingError as error:
        deployment = error
    return ResolvedRun(
        request=request, module=module, exercise=exercise, launcher=launcher, lab=lab, deployment=deployment, kind=kind
    )


def _check_values(exercise: Exercise, request: RunRequest) -> None:
    """Check the number of nodes and the parameters, as far as that needs no lab. Raises UnknownName or UsageError."""
    if request.nodes is not None and request.nodes < 1:
        raise UsageError(f"--nodes {request.nodes}: at least one node is needed", hint=f"gpucourse run {exercise.id} --nodes 1")
    if request.settings:
        from gpucourse.course import parameters

        parameters.resolve(exercise, request.settings, local=True)


def find_run(context: Context, name: str | None) -> RunRecord:
    """Return the run that `name` identifies, as `workspace.runs.find` does. Also raises UnknownName for the number of an
    exercise that does not exist.
    """
    if name and runs.is_exercise_number(name) and not runs.list_folders(context.paths, name):
        context.catalog.exercise(name)
    return runs.find(context.paths, name)


def find_deployed_lab(
    paths: WorkspacePaths, module: Module, *, target: str | None = None, gpu: str | None = None
) -> Deployment:
    """Return the module's lab that is ready. If there are several, on different targets or GPUs, return the one used last.

    Raises MissingError with the command that deploys it.
    """
    candidates = [
        deployment
        for deployment in deployments.list_of_module(paths, module.id)
        if (target is None or deployment.target == target) and gpu in {None, deployment.gpu}
    ]
    for deployment in candidates:
        if deployment.up:
            return deployment
    place = "".join((f" on {target}" if target else "", f" with the GPU {gpu}" if gpu else ""))
    if candidates and candidates[0].is_stopped:
        raise MissingError(f"the lab of module {module.id}{place} is stopped", hint=f"gpucourse start {module.id}")
    state = f"is not ready (its state: {candidates[0].phase})" if candidates else "is not deployed"
    where_gpus_are_chosen = " --target aws" if gpu and not target else ""
    flags = "".join((f" --target {target}" if target else where_gpus_are_chosen, f" --gpu {gpu}" if gpu else ""))
    raise MissingError(f"the lab of module {module.id}{place} {state}", hint=f"gpucourse deploy {module.id}{flags}")


def find_script_lab(context: Context, usual: Module, request: RunRequest) -> Module:
    """Return the module on whose lab a learner's script runs: `usual` if its lab is ready, or if no lab is ready.

    Otherwise, return the module of the ready lab that was used last.
    """
    labs = [
        lab
        for lab in deployments.readable(context.paths)[0]
        if lab.up and not lab.has_slurm and request.target in {None, lab.target} and request.gpu in {None, lab.gpu}
    ]
    newest = max(labs, key=lambda lab: lab.updated, default=None)
    is_usual = newest is None or any(lab.module == usual.id for lab in labs)
    return usual if newest is None or is_usual else context.catalog.module(newest.module)


def _find_slurm_module(context: Context, module: Module, request: RunRequest) -> Module:
    """Return a module whose lab has Slurm: this module if it does, otherwise the first such module of the course. If that lab
    is not ready, return the module of the lab on a Slurm cluster that was used last.

    Raises MissingError if there is none.
    """
    catalog = context.catalog
    labs = [lab for lab in deployments.readable(context.paths)[0] if lab.up and request.target in {None, lab.target}]
    if any(lab.module == module.id and lab.runs_as_jobs for lab in labs):
        return module
    slurm_module = next((item for item in catalog.iterate(module.id) if item.lab.scheduler == "slurm"), None)
    if slurm_module is None:
        raise MissingError("no module of this course has a lab with Slurm", hint="gpucourse list shows the modules")
    newest = max((lab for lab in labs if lab.runs_as_jobs), key=lambda lab: lab.updated, default=None)
    is_usual = newest is None or any(lab.module == slurm_module.id for lab in labs)
    return slurm_module if newest is None or is_usual else catalog.module(newest.module)


@dataclass(frozen=True)
class RunLocation:
    """The lab or the target of a run. `lacks`: what is missing there, according to the record of the lab."""

    mode: Mode
    lacks: str = ""


def locate_run(context: Context, run: ResolvedRun) -> RunLocation:
    """Return the place where a run would happen: the recorded lab, otherwise the target of a new lab."""
    if not isinstance(run.deployment, MissingError):
        return RunLocation(run.deployment.mode, run.deployment.lacks)
    existing = deployments.list_of_module(
        context.paths, run.lab.id
    )  # the run would use this lab, even if it is stopped or not ready
    return RunLocation(run.request.target or (existing[0].mode if existing else context.settings.target))
