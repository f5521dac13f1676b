"""Turn a resolved run into a launch plan on live nodes. Everything before the start of the run happens here."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.course.rules import CUDA_STARTER, PROFILER
from gpucourse.errors import MissingError, UsageError
from gpucourse.launch.launcher import LabFacts, Launcher, LaunchRequest, NodeFacts, WrittenBatch
from gpucourse.launch.neighbours import (
    find_base,
    find_imports,
    find_included_files,
    find_mentioned_files,
    find_named_files,
)
from gpucourse.launch.own_batch import check_script, make_shell_script_error
from gpucourse.launch.planning import choose_nodes
from gpucourse.launch.torchrun import read_options
from gpucourse.model.deployment import Deployment
from gpucourse.model.event import Note, Watcher, ignore_event, stage
from gpucourse.model.launching import advise_install
from gpucourse.model.manifest import Exercise
from gpucourse.model.plan import LaunchPlan, Upload
from gpucourse.runs import slurm
from gpucourse.runs.connect import interfaces, make_fleet, reach
from gpucourse.runs.resolve import ResolvedRun, RunRequest
from gpucourse.runs.slurm_hours import check_hours
from gpucourse.storage import find_shortage
from gpucourse.workspace import runs
from gpucourse.workspace.exercises import ensure_copies
from gpucourse.workspace.files import read_metrics
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet


MAX_EARLIER_RUNS = 8
EMULATOR = "emulator"  # the folder with the emulator of a GPU in the shared files
SHARED = "shared"  # the folder of `exercises/` with files that are uploaded next to the scripts that name them


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run that is planned on connected nodes.

    `plans`: the plan of the run, and the plans of the runs that are submitted with it as one job array.
    `phases_s`: how long each stage took.
    `skew_s`: how far each node's clock is ahead of this computer's, in seconds.
    """

    plan: LaunchPlan
    deployment: Deployment
    fleet: Fleet
    phases_s: dict[str, float]
    skew_s: dict[str, float]
    plans: tuple[LaunchPlan, ...] = ()


@contextmanager
def plan_run(
    context: Context, run: ResolvedRun, *, is_drill: bool = False, other_tasks: Sequence[ResolvedRun] = ()
) -> Iterator[PlannedRun]:
    """Connect to the nodes of a run and yield its plan. The connections stay open during the block; nothing on the nodes
    changes.

    `other_tasks`: the runs that become tasks of one job array together with this one, if Slurm runs it.

    Raises UsageError, MissingError (no lab, no torch), and UnreachableError.
    """
    from gpucourse.remote.execute import max_files_of

    request, scheduled = run.request, run.is_scheduled
    if request.script is not None and run.kind is not None and run.kind.is_shell and not run.launcher.takes_batch_files:
        raise make_shell_script_error(request.script)
    deployment = run.require_deployment()
    if not scheduled and request.slurm.list_words():
        raise UsageError(
            f"--slurm is for a run on a Slurm cluster, and the lab of module {run.lab.id} is none",
            hint=f"gpucourse run {_write_subject(request)}",
        )
    if not scheduled and run.lab.lab.scheduler == "slurm" and deployment.uses_existing_machines:
        raise _refuse_login_node(deployment, request)
    inventory = deployment.inventory
    if inventory is None:  # `find_deployed_lab` guarantees one
        raise AssertionError(deployment.stack)
    batch = slurm.find_written_batch(context, run) if scheduled and not is_drill else None
    launch_request = make_launch_request(context, run, local=deployment.is_simulated, batch=batch)
    if other_tasks:
        launch_request = replace(launch_request, array_task=0)
    nodes = (inventory.head,) if scheduled else choose_nodes(run.exercise, inventory, request.nodes, run.module.id)
    if shortage := find_shortage(context.paths.root):
        context.watch(Note(text=shortage, level="warning"))
    phases_s: dict[str, float] = {}
    skew_s: dict[str, float] = {}
    with make_fleet(context.transport, deployment, nodes, scheduled=scheduled) as fleet:
        with stage(context.watch, "connect", f"connecting to {len(nodes)} node{'s' if len(nodes) != 1 else ''}", phases_s):
            reach(context.watch, fleet)
            if scheduled:
                plans = _plan_jobs(context, fleet, launch_request, (run, *other_tasks), deployment)
                check_hours(context, run, plans[0], runs_alike=len(plans))
            else:
                plans = [plan_on(context, fleet, launch_request, run.launcher, skew_s)]
        plans = [
            replace(
                plan,
                own_script=request.script.name if request.script else "",
                log_limit=context.settings.log_limit,
                output_limit=context.settings.output_limit,
                max_output_files=max_files_of(len(nodes)),
            )
            for plan in plans
        ]
        # A launcher such as mpi starts its command on the first node only.
        started = fleet if scheduled else fleet.part(plans[0].nodes)
        yield PlannedRun(
            plan=plans[0], deployment=deployment, fleet=started, phases_s=phases_s, skew_s=skew_s, plans=tuple(plans)
        )


def _plan_jobs(
    context: Context, fleet: Fleet, first: LaunchRequest, tasks: Sequence[ResolvedRun], deployment: Deployment
) -> list[LaunchPlan]:
    """Return the plan of a run under Slurm, or the plans of several runs as tasks of a job array. The cluster is queried once,
    and the notes for the learner are about the first run. If another run cannot be planned, only the first plan is returned.

    `first`: the request of the first run.
    """
    from gpucourse.remote.slurm_client import cluster

    head = fleet.nodes[0]
    slurm_cluster = cluster(fleet.link(head))
    plans = [slurm.plan_on(context.watch, slurm_cluster, head, first, tasks[0], deployment)]
    for number, run in enumerate(tasks[1:], 1):
        try:
            request = make_launch_request(
                context.watched_by(ignore_event), run, local=deployment.is_simulated, batch=first.written_batch
            )
            request = replace(request, array_task=number)
            plans.append(slurm.plan_on(ignore_event, slurm_cluster, head, request, run, deployment))
        except (UsageError, MissingError):  # when that run is started separately, its error says why
            return plans[:1]
    return plans


def rehearse(context: Context, run: ResolvedRun) -> LaunchPlan:
    """Return the plan of a run without starting anything. Raises the errors of `plan_run`."""
    with plan_run(context, run) as plan:
        return plan.plan


def _write_subject(request: RunRequest) -> str:
    """Return what names the program after `gpucourse run`: `--module NAME`, `--script FILE` or the exercise."""
    if request.python_module:
        return f"--module {request.python_module}"
    return f"--script {quote(str(request.script))}" if request.script else request.exercise


def _refuse_login_node(deployment: Deployment, run_request: RunRequest) -> UsageError:
    """Return the error for a run that would compute on the login node of a Slurm cluster."""
    place = deployment.inventory.head.label if deployment.inventory else deployment.stack
    return UsageError(
        f"{place} is the login node of a Slurm cluster, and this run would compute on it",
        hint=f"hand it to Slurm: gpucourse run {_write_subject(run_request)} --launcher slurm",
    )


def make_launch_request(context: Context, run: ResolvedRun, *, local: bool, batch: WrittenBatch | None = None) -> LaunchRequest:
    """Return the launch request of a run, with the files to upload. Every parameter is converted and checked.

    `batch`: the learner's own batch file, if that is the file to submit.
    """
    from gpucourse.course.parameters import arguments
    from gpucourse.course.parameters import resolve as resolve_parameters

    request, exercise, launcher = run.request, run.exercise, run.launcher
    values = resolve_parameters(exercise, request.settings, local=local)
    # A learner's script receives only what was typed, not parameters that it may not have.
    parameters = {name: value for name, value in values.items() if request.script is None or name in request.settings}
    script, uploads = _uploads(context, run)
    lab = None if run.is_scheduled or isinstance(run.deployment, MissingError) else run.deployment
    if lab is not None and request.nodes is None:
        if script == exercise.script:
            _warn_of_few_nodes(context.watch, exercise, lab)
        count = min(exercise.launch.nodes, len(lab.nodes))
        if request.script is not None and launcher.one_process and count > 1:
            text = f"{request.script.name} is started {count} times, once on each node; --nodes 1 starts it once"
            context.watch(Note(text=text, level="warning"))
    words = (*arguments(exercise, parameters), *request.arguments)
    if request.python_module:
        script, words = "-m", (request.python_module, *words)
    packages = exercise.packages if request.script is None else launcher.packages
    if run.kind is not None and run.kind.is_cuda:
        words = (script, *words)
        script, uploads, packages = CUDA_STARTER, (*_list_cuda_files(), *uploads), ()
    if request.profile:
        words = (script, *words)
        script, uploads = PROFILER, (*uploads, Upload(name=PROFILER, source=context.folders.exercises / SHARED / PROFILER))
        packages = packages if request.script is None else ("torch",)
    options = {"nodes": request.nodes, "timeout": request.timeout_s}
    return LaunchRequest(
        exercise=exercise,
        launcher=launcher.name,
        packages=packages,
        programs=exercise.programs if request.script is None else (),
        script=script,
        parameters=dict(parameters),
        arguments=words,
        uploads=uploads,
        timeout_s=request.timeout_s or exercise.launch.timeout,
        environment={**(_link_of(lab) if lab is not None else {}), **request.environment},
        handed_on=request.handed_on,
        torchrun_options=read_options(request.torchrun),
        nccl=lab.nccl if lab is not None else {},
        processes=request.processes,
        typed=frozenset(request.settings) | {name for name, value in options.items() if value is not None},
        written_batch=batch,
    )


def _list_cuda_files() -> list[Upload]:
    """Return the files of the built-in course that run a CUDA program on a node."""
    shared = find_course({}).exercises / SHARED
    return find_named_files((shared / CUDA_STARTER, shared / EMULATOR), shared)


def _warn_of_few_nodes(watch: Watcher, exercise: Exercise, lab: Deployment) -> None:
    """Warn if fewer nodes are deployed than an exercise is meant for. The warning names the command that deploys the rest."""
    deployed, intended = len(lab.nodes), exercise.launch.nodes
    if deployed < intended and not lab.uses_existing_machines:
        command = f"gpucourse deploy {lab.module}{lab.flag} --nodes {intended}"
        verb = "is" if deployed == 1 else "are"
        text = f"{exercise.id} is meant for {intended} nodes, but only {deployed} {verb} deployed; to deploy more: {command}"
        watch(Note(text=text, level="warning"))


def _link_of(lab: Deployment) -> dict[str, str]:
    """Return the variables that tell ranks the speed of the link between simulated nodes, if it is limited."""
    if not lab.link:
        return {}
    from gpucourse.local.machines.link import parse

    link = parse(lab.link)
    return {"GPUCOURSE_LINK_GBPS": f"{link.bits / 1e9:g}", "GPUCOURSE_LINK_BURST_BYTES": str(link.burst)}


def plan_on(
    context: Context, fleet: Fleet, request: LaunchRequest, launcher: Launcher[LabFacts], skew_s: dict[str, float] | None = None
) -> LaunchPlan:
    """Query the nodes for what the plan needs (a free port, torch, the cores), and return the plan.

    `skew_s`: a dictionary to fill with the seconds by which each node's clock is ahead.
    """
    from gpucourse.remote.execute import probe

    ports = context.settings.ports
    probes = probe(fleet, modules=request.packages, programs=request.programs, ports=ports)
    for node in fleet.nodes:
        if missing := probes[node.name].missing:
            raise MissingError(
                f"{', '.join(missing)} is not installed on {node.label} (for {node.python})",
                hint=advise_install(missing, node.python, on_this_computer=node.is_simulated),
            )
        if programs := probes[node.name].missing_programs:
            place = "on this computer" if node.is_simulated else f"on {node.label}"
            raise MissingError(
                f"{', '.join(programs)} is not installed on {node.label}",
                hint=f"{place}: sudo apt-get install {' '.join(programs)}",
            )
    if skew_s is not None:
        skew_s.update({name: answer.clock_skew_s for name, answer in probes.items()})
    ways = interfaces(fleet, fleet.nodes)
    facts = {node.name: NodeFacts(cores=probes[node.name].cores, interface=ways[node.name]) for node in fleet.nodes}
    free_ports = probes[fleet.nodes[0].name].free_ports
    if not free_ports:
        first, last = ports
        raise MissingError(
            f"every port from {first} to {last} is taken on {fleet.nodes[0].label}, so the ranks have no port to meet at",
            hint=f"set another range: rendezvous_ports in {context.paths.settings}",
        )
    # Not the first port, because two runs that start at the same moment would both choose it.
    port = random.choice(free_ports)
    return launcher.plan(request, fleet.nodes, LabFacts(nodes=facts, port=port))


def _refuse_same_names(exercise: Exercise, uploads: list[Upload], extra_uploads: list[Upload]) -> None:
    """Refuse a --with file that would replace a file of the exercise. Raises UsageError."""
    sources = {upload.name: upload.source for upload in uploads}
    for upload in extra_uploads:
        if upload.name in sources and upload.source.resolve() != sources[upload.name].resolve():
            raise UsageError(
                f"--with {upload.source}: {exercise.id} has a file of its own named {upload.name}",
                hint=f"edit your copy of it: {sources[upload.name]}",
            )


def _uploads(context: Context, run: ResolvedRun) -> tuple[str, tuple[Upload, ...]]:
    """Return the script's name on the node and every file to upload.

    For an exercise, these are the learner's copies of its files, the results of earlier runs that it builds on, and the files
    that were named. If the learner runs a script of their own instead, that script and the files next to it that it uses
    replace the exercise's script and the earlier results.
    """
    request, exercise, script = run.request, run.exercise, run.request.script
    originals = context.folders.exercises
    places = context.catalog.sources(exercise)
    for name in ensure_copies(context.paths, originals, places.values()):
        context.watch(Note(text=f"exercises/{name}: the course has a newer version; yours is kept and used"))
    folder = request.copies
    uploads = [
        Upload(name=name, source=context.paths.exercises / place if folder is None else folder / name)
        for name, place in places.items()
    ]
    if script is None:
        extra_uploads = find_named_files(request.extra, uploads[0].source.resolve().parent)
        _refuse_same_names(exercise, uploads, extra_uploads)
        return exercise.script, (*uploads, *extra_uploads, *list_earlier_runs(context.paths, exercise))
    check_script(script)
    shell = run.launcher.by_slurm and run.kind is not None and not run.kind.is_python
    whole = script.resolve().parent if shell else find_base(script, request.extra)
    base = Path.cwd() if request.python_module else whole
    verb, neighbours = "imports", find_imports(script, base, request.python_module)
    if shell:
        verb, neighbours = "names", find_mentioned_files(script)
    elif run.kind is not None and run.kind.is_cuda:
        verb, neighbours = "includes", find_included_files(script)
    if neighbours:
        names = ", ".join(upload.name for upload in neighbours[:6]) + (
            f" and {len(neighbours) - 6} more" if len(neighbours) > 6 else ""
        )
        context.watch(Note(text=f"{script.name} {verb} files next to it, so they are uploaded too: {names}"))
    source = script if request.python_module else script.resolve()
    name = source.relative_to(base).as_posix() if source.is_relative_to(base) else script.name
    own_files = [Upload(name=name, source=source), *find_named_files(request.extra, base), *neighbours]
    # The learner's files replace the course's.
    by_name = {upload.name: upload for upload in [*uploads[1:], *reversed(own_files)]}
    # Without `./`, Python would read a name that begins with a dash as one of its own flags.
    return f"./{name}" if name.startswith("-") else name, tuple(by_name.values())


def list_earlier_runs(paths: WorkspacePaths, exercise: Exercise) -> list[Upload]:
    """Return the results of earlier runs to upload, as `earlier-4.3-20260131-142501-otter.json`.

    For each exercise that this one builds on, these are the newest good runs: one for each device and model.
    """
    uploads: list[Upload] = []
    for earlier in exercise.builds_on:
        kinds: set[tuple[str, str]] = set()
        for record in runs.iterate_newest_first(paths, earlier):
            source = runs.files_of(paths, record).metrics
            if not record.is_evidence or record.verdict in {"failed", "error"} or not source.is_file():
                continue
            try:
                metrics = read_metrics(source)
            except MissingError:
                continue
            kind = (str(metrics.get("device")), str(metrics.get("model"))) if isinstance(metrics, dict) else ("", "")
            if kind[0] and kind not in kinds and len(kinds) < MAX_EARLIER_RUNS:
                kinds.add(kind)
                uploads.append(Upload(name=f"earlier-{earlier}-{record.id}.json", source=source))
    return uploads
