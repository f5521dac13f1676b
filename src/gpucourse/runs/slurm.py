"""Run under Slurm: choose and check the batch file or the plan, and record how the jobs ended.

A batch file that the learner wrote is submitted once its judge passes it. A job that the cluster can never run is refused.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from gpucourse.context import Context
from gpucourse.errors import CheckFailed, GpucourseError, MissingError, UsageError
from gpucourse.launch import own_batch
from gpucourse.launch import slurm as batch
from gpucourse.launch.launcher import ClusterFacts, ClusterSite, LaunchRequest, WrittenBatch, find_launcher
from gpucourse.launch.sbatch import time_limit
from gpucourse.model.deployment import Deployment, SlurmDeployment
from gpucourse.model.event import Note, Watcher, ignore_event
from gpucourse.model.manifest import LearnerPart
from gpucourse.model.node import Node
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import JobRow, SlurmRun
from gpucourse.model.slurm_settings import OWN_GPU_OPTIONS, SlurmSettings, merge
from gpucourse.outside.names import OutsideError, relative_name
from gpucourse.outside.slurm_options import SlurmOptions, read_file, read_sbatch_options
from gpucourse.runs import parts
from gpucourse.runs.resolve import ResolvedRun, RunRequest
from gpucourse.runs.slurm_hours import count_max_gpu_hours
from gpucourse.units import format_seconds
from gpucourse.workspace.files import read_metrics
from gpucourse.workspace.paths import RunPaths

if TYPE_CHECKING:
    from gpucourse.remote.slurm_client import ComputeNode, Partition, SlurmCluster

MAX_CORES = 8  # for each process with a GPU, unless the learner's settings say otherwise
LOCAL_THREADS = 1  # the nodes of a simulated cluster share the cores of one machine

Ending = Literal["exited", "cancelled", "timed_out", "lost"]


def find_written_batch(context: Context, run: ResolvedRun) -> WrittenBatch | None:
    """Return the learner's batch file for this run. Return None if the course's own file is submitted.

    The course's file is submitted if the exercise has no such part, if the part is still open, or if another script, another
    launcher or the array's values were typed. Raises CheckFailed with the reason if the learner's file is wrong; nothing is
    then submitted. Raises MissingError if the judge needs a package that is not installed here.
    """
    exercise = run.exercise
    part = next((part for part in exercise.yours if part.submit), None)
    if part is None or run.request.script is not None or not run.launcher.by_slurm:
        return None
    file = parts.list_part_files(context, exercise)[part.id]
    result = parts.judge_part(context, exercise, part, file)
    if result.verdict == "open":
        return None
    if result.verdict != "passed":
        raise CheckFailed(
            f"{part.file} was not submitted: {result.says}",
            hint=f"edit {file}, then gpucourse try {exercise.id}; gpucourse hint {exercise.id}",
        )
    array = exercise.launch.slurm.array if exercise.launch.slurm else None
    if array in run.request.settings:
        text = f"--set {array} was typed, so the course's own file is submitted: {part.file} has values of its own"
        context.watch(Note(text=text, level="warning"))
        return None
    context.watch(Note(text=f"{part.file} is correct and will be submitted unchanged"))
    return _read(part, file.read_text(encoding="utf-8"))


def _read(part: LearnerPart, text: str) -> WrittenBatch:
    return WrittenBatch(name=part.file.rpartition("/")[2].rpartition(".")[0], text=text, tasks=len(read_file(text).array[0]))


def plan_on(
    watch: Watcher,
    slurm_cluster: SlurmCluster,
    head: Node,
    request: LaunchRequest,
    run: ResolvedRun,
    deployment: Deployment,
) -> LaunchPlan:
    """Return the plan of a run under Slurm. Refuse a request that the cluster of this deployment can never fulfil."""
    settings = merge_settings(deployment, run)
    if run.is_own_batch and run.request.script is not None:
        return _plan_own_batch(request, run, run.request.script, head, slurm_cluster, settings)
    typed = run.request
    nodes = batch.nodes_of(request, typed.nodes if typed.nodes is not None else _choose_count(request, run, deployment))
    if deployment.runs_as_jobs and request.processes is None and OWN_GPU_OPTIONS.isdisjoint(settings.options):
        is_open = request.exercise.launch.procs_per_node == "gpu"  # one GPU, because other people wait for the others
        request = replace(request, processes=1) if is_open else request
    partition = _choose_partition(request, slurm_cluster, deployment, settings, nodes, typed)
    request = _limit_time(watch, request, partition, deployment, typed)
    _check_gpu_type(partition, settings, typed)
    gpus = choose_gpus(request, partition, nodes, settings)
    _check_nodes(watch, request, partition, nodes, gpus, deployment, typed)
    facts = ClusterFacts(
        module=run.lab.id,
        partition=partition.name,
        nodes=nodes,
        threads=LOCAL_THREADS if head.is_simulated else None,
        gpus=gpus,
        python=_python_of(deployment),
        site=_make_site(request, deployment, settings, partition, gpus),
    )
    if absent := facts.site.absent_partition:
        text = f"the cluster has no partition {absent}, which your file names; its jobs go to {partition.name}"
        watch(Note(text=text))
    launcher = run.launcher if run.launcher.by_slurm else find_launcher(batch.Slurm.name)
    return launcher.plan(request, (head,), facts)


def _choose_count(request: LaunchRequest, run: ResolvedRun, deployment: Deployment) -> int | None:
    """Return how many nodes a job requests if no number was typed. Return None for as many nodes as the exercise is meant
    for."""
    if not isinstance(deployment, SlurmDeployment):
        return None
    if run.request.script is not None:  # because other people wait for the other nodes
        return 1
    return min(request.exercise.launch.nodes, deployment.run_nodes) if deployment.run_nodes else None


def merge_settings(deployment: Deployment, run: ResolvedRun) -> SlurmSettings:
    """Return the settings of the lab, overridden by those that were typed for this run. For a lab that is not on a Slurm
    cluster, they are empty.

    Raises UsageError if settings were typed for such a lab.
    """
    if isinstance(deployment, SlurmDeployment):
        return merge(deployment.settings, run.request.slurm)
    if run.request.slurm != SlurmSettings():
        raise UsageError(
            f"--slurm is for labs on a Slurm cluster, and {deployment.stack} is not one",
            hint=f"gpucourse deploy {run.lab.id} --target slurm --login me@cluster",
        )
    return SlurmSettings()


def _make_site(
    request: LaunchRequest, deployment: Deployment, settings: SlurmSettings, partition: Partition, gpus: int
) -> ClusterSite:
    """Return the options, set-up lines, Python and container that the lab's Slurm settings add to the jobs of a run. They are
    empty if the lab is not on a Slurm cluster."""
    if not isinstance(deployment, SlurmDeployment):
        return ClusterSite()
    comment = f"--comment={deployment.comment}"
    written = request.written_batch
    is_own = written is not None
    facts = deployment.facts
    file_partition = batch.partition_of(request) if is_own else ""
    named = is_own and not settings.partition and file_partition != partition.name
    own_gpus = None if written is not None and read_sbatch_options(written.text).gpus else 0
    container = settings.container
    return ClusterSite(
        flags=(
            comment,
            *((f"--partition={partition.name}",) if named else ()),
            *settings.flags(gpus=own_gpus if is_own else gpus),
        ),
        cpu_flags=(comment, *_list_cpu_flags(request, deployment, settings)),
        setup=settings.setup,
        python=deployment.write_job_python(settings),
        apptainer=container.apptainer if container else "",
        pyxis=container.pyxis if container else "",
        cores=_choose_cores(settings, partition, gpus),
        absent_partition=file_partition if file_partition and facts.find_partition(file_partition) is None else "",
        requests_gpus=not is_own and gpus > 0,
    )


def _list_cpu_flags(request: LaunchRequest, deployment: SlurmDeployment, settings: SlurmSettings) -> tuple[str, ...]:
    """Return the options of a job without a GPU. Unless the settings name a partition for such jobs, the job goes to a
    partition without GPUs, with at most the time limit of that partition.
    """
    flags = settings.flags(gpus=0)
    name = settings.cpu_partition or settings.partition
    facts = deployment.facts
    partition = facts.find_partition(name) if name else facts.choose_partition(gpus=0, account=settings.account)
    if partition is None:
        return flags
    is_long = partition.max_s is not None and partition.max_s < request.timeout_s
    time = (f"--time={time_limit(partition.max_s)}",) if is_long and partition.max_s is not None else ()
    return (*(() if name else (f"--partition={partition.name}",)), *time, *flags)


def _choose_cores(settings: SlurmSettings, partition: Partition, gpus: int) -> int:
    """Return how many cores each process with a GPU gets: its share of a node's cores, at most MAX_CORES. Return 0 if the
    settings or Slurm decide.
    """
    if settings.cpus_per_gpu or not gpus or any(name.startswith("cpus-per-") for name in settings.options):
        return 0
    shares = [node.cores // node.gpus for node in partition.nodes if node.gpus >= gpus]
    return max(1, min(MAX_CORES, *shares)) if shares else 0


def _plan_own_batch(
    request: LaunchRequest,
    run: ResolvedRun,
    script: Path,
    head: Node,
    slurm_cluster: SlurmCluster,
    settings: SlurmSettings,
) -> LaunchPlan:
    """Return the plan for a learner's batch file. Only its partition is checked here; sbatch checks everything else.

    The file's own lines override the settings of the lab, and the options that were typed for this run override both.
    """
    batch_file = own_batch.read(script)
    deployment = run.require_deployment()
    typed = run.request.slurm
    requested_partition = batch.partition_of(request) or typed.partition
    settings_partition = settings.partition if not batch_file.read_option("partition") else ""
    partition = (
        requested_partition or settings_partition or slurm_cluster.batch_partition or batch_file.read_option("partition")
    )
    if partition and slurm_cluster.partition(partition) is None:
        raise _make_partition_error(partition, slurm_cluster, run.request, deployment)
    site_flags: tuple[str, ...] = ()
    if isinstance(deployment, SlurmDeployment):
        lab_flags = [flag for flag in settings.flags(gpus=None) if not batch_file.read_option(_name_flag(flag))]
        typed_flags = [flag for flag in typed.flags(gpus=None) if flag not in lab_flags]
        site_flags = (f"--comment={deployment.comment}", *lab_flags, *typed_flags)
    return own_batch.plan(
        request,
        head,
        batch_file,
        nodes=run.request.nodes,
        partition=requested_partition or settings_partition,
        default=slurm_cluster.default.name if slurm_cluster.default else "",
        login=slurm_cluster.batch_partition,
        time_s=run.request.timeout_s,
        module=run.lab.id,
        site_flags=site_flags,
    )


def _name_flag(flag: str) -> str:
    return flag.removeprefix("--").partition("=")[0]


def _make_partition_error(name: str, slurm_cluster: SlurmCluster, typed: RunRequest, deployment: Deployment) -> GpucourseError:
    names = ", ".join(partition.name for partition in slurm_cluster.partitions) or "none"
    default = next((partition.name for partition in slurm_cluster.partitions if partition.default), "NAME")
    if isinstance(deployment, SlurmDeployment):
        best = deployment.facts.choose_partition(gpus=1, account=deployment.settings.account)
        default = best.name if best else default
    refusal = _choose_refusal(deployment)
    slurm, settings = replace(typed.slurm, partition=default), {**typed.settings, "partition": default}
    again = replace(typed, slurm=slurm) if deployment.runs_as_jobs else replace(typed, settings=settings)
    return refusal(f"the cluster has no partition '{name}'; it has: {names}", hint=again.command)


def _choose_refusal(deployment: Deployment) -> type[GpucourseError]:
    """Return the class of the error for a resource that a cluster lacks or does not allow: MissingError on a cluster that other
    people share, UsageError on the course's own."""
    return MissingError if deployment.runs_as_jobs else UsageError


def _choose_partition(
    request: LaunchRequest,
    slurm_cluster: SlurmCluster,
    deployment: Deployment,
    settings: SlurmSettings,
    nodes: int,
    typed: RunRequest,
) -> Partition:
    """Return the partition for the job: the one that was named, otherwise the cluster's default.

    On a Slurm cluster that other people share, the partition that the course's files name may not exist. Unless the learner
    named it too, it is replaced by one that has enough GPUs and a long enough time limit. In the course's own clusters, a
    partition called `gpu` has priority over the default. Refuses a partition that does not exist or is down.
    """
    is_terminal = find_launcher(request.launcher).is_terminal
    login = slurm_cluster.session_partition if is_terminal else slurm_cluster.batch_partition
    is_written = request.written_batch is not None
    is_typed = request.exercise.launch.slurm_request.partition in request.typed
    preferred = settings.partition
    if request.written_batch is not None and not read_sbatch_options(request.written_batch.text).gpus:
        preferred = settings.cpu_partition or settings.partition
    name = preferred if preferred and not is_typed else batch.partition_of(request, login)
    is_free = isinstance(deployment, SlurmDeployment) and not (is_typed or preferred or login)
    if is_free and (not name or slurm_cluster.partition(name) is None):
        name = _find_partition(request, deployment, settings, nodes)
    name = name or ("" if is_written else batch.PARTITION)
    partition = slurm_cluster.partition(name)
    if partition is None and (not name or (name == batch.PARTITION and not (is_written or preferred))):
        partition = slurm_cluster.default
    if partition is None:
        raise _make_partition_error(name, slurm_cluster, typed, deployment)
    if not partition.open:
        raise _choose_refusal(deployment)(
            f"the partition {partition.name} is down: it accepts no jobs", hint="sinfo on the head shows the others"
        )
    return partition


def _find_partition(request: LaunchRequest, deployment: Deployment, settings: SlurmSettings, nodes: int) -> str:
    """Return the partition that fits a job, according to the facts about the lab. A job that can use a GPU gets a partition
    with GPUs if there is one. Return an empty string if no partition fits.
    """
    if not isinstance(deployment, SlurmDeployment):
        return ""
    launch = request.exercise.launch
    minimum = launch.slurm_request.gpus if launch.slurm else min(1, batch.tasks_of(request, 1))
    if request.written_batch is not None:
        minimum = read_sbatch_options(request.written_batch.text).gpus
    for gpus in (minimum, 0):
        partition = deployment.facts.choose_partition(
            gpus=gpus, nodes=nodes, gpu=settings.gpu, time_s=request.timeout_s, account=settings.account
        )
        if partition is not None:
            return partition.name
    return ""


def _limit_time(
    watch: Watcher, request: LaunchRequest, partition: Partition, deployment: Deployment, typed: RunRequest
) -> LaunchRequest:
    """Return the request with a time limit that the partition allows. Refuses a longer limit that was typed."""
    limit, written = partition.max_s, request.written_batch
    is_typed = "timeout" in request.typed
    time_s = request.timeout_s
    if written is not None and not is_typed:
        time_s = read_sbatch_options(written.text).seconds or 0.0
    if limit is None or time_s <= limit:
        return request
    allowed = f"the partition {partition.name} allows jobs of at most {format_seconds(limit)}"
    if is_typed:
        raise _choose_refusal(deployment)(
            f"{allowed}, and --timeout asks for {format_seconds(time_s)}",
            hint=replace(typed, timeout_s=limit).command,
        )
    watch(Note(text=f"{allowed}, so the time limit is not {format_seconds(time_s)}", level="warning"))
    names = request.typed | {"timeout"} if written is not None else request.typed  # then it overrides the file's own limit
    return replace(request, timeout_s=float(limit), typed=names)


def choose_gpus(request: LaunchRequest, partition: Partition, nodes: int, settings: SlurmSettings | None = None) -> int:
    """Return how many GPUs the job gets on each node.

    An exercise that was not written for Slurm gets one GPU per process, if the nodes have enough. An option that the learner
    typed has priority.
    """
    settings = settings or SlurmSettings()
    has = _list_gpus(partition, settings.gpu)
    if not OWN_GPU_OPTIONS.isdisjoint(settings.options):
        values = {name: str(value) for name, value in settings.options.items() if value is not False}
        return SlurmOptions(values={"nodes": str(nodes), **values}).gpus
    if request.exercise.launch.slurm is None:
        available = min(has[:nodes], default=0)
        return min(available, batch.tasks_of(request, available))
    return request.exercise.launch.slurm_request.gpus if has and has[0] else 0


def _check_gpu_type(partition: Partition, settings: SlurmSettings, typed: RunRequest) -> None:
    """Raise MissingError if the partition has GPUs, but none of the type that the settings name."""
    types = list(dict.fromkeys(kind for node in partition.nodes for kind in node.gpu_types))
    if settings.gpu and settings.gpu not in types and any(node.gpus for node in partition.nodes):
        has = ", ".join(types) or "no types known to Slurm"
        again = replace(typed, slurm=replace(typed.slurm, gpu=next(iter(types), "")))
        hint = again.command if types else "leave the key gpu out"
        raise MissingError(f"the partition {partition.name} has no GPU of the type {settings.gpu}; it has: {has}", hint=hint)


def _list_gpus(partition: Partition, gpu: str) -> list[int]:
    """Return the number of GPUs of each node, the largest first. If `gpu` names a type of GPU, nodes without that type count
    as nodes without GPUs."""
    counts = [(0 if gpu and gpu not in node.gpu_types else node.gpus, node.count) for node in partition.nodes]
    return [gpus for gpus, count in sorted(counts, reverse=True) for _ in range(count)]


def _python_of(deployment: Deployment) -> str:
    """Return the Python of the nodes on which jobs run, if it differs from the head's. Otherwise, return an empty string."""
    if deployment.inventory is None:
        return ""
    head = deployment.inventory.head
    return next((n.python for n in deployment.inventory.nodes if n.role == "worker" and n.python != head.python), "")


def _check_nodes(
    watch: Watcher,
    request: LaunchRequest,
    partition: Partition,
    nodes: int,
    gpus: int,
    deployment: Deployment,
    typed: RunRequest,
) -> None:
    """Refuse a job that can never start. The error names nodes that are down, with Slurm's reason."""
    name = partition.name
    # The course can neither enlarge nor repair a cluster that already existed.
    deploy = "" if deployment.uses_existing_machines else f"gpucourse deploy {deployment.module}{deployment.flag}"
    if not gpus and request.exercise.launch.slurm_request.gpus:
        text = f"no node of the partition {name} has a GPU that Slurm knows of (sinfo -o '%N %G'); the jobs run without one"
        watch(Note(text=text, level="warning"))
    tasks = batch.tasks_of(request, gpus)
    fitting = [node for node in partition.nodes if node.gpus >= gpus and node.cores >= tasks]
    enough = sum(node.count for node in fitting)
    if nodes > enough:
        size = (f"{gpus} GPU each" if gpus else "", f"{tasks} cores each" if tasks > 1 else "")
        has = " and ".join(filter(None, size))
        hint = replace(typed, nodes=enough).command + (f"; a larger lab: {deploy} --nodes {nodes}" if deploy else "")
        raise _choose_refusal(deployment)(
            f"{nodes} node{'s were' if nodes > 1 else ' was'} requested, but the partition {name} has {enough} "
            f"node{'s' if enough != 1 else ''}{f' with {has}' if has else ''}",
            hint=hint
            if fitting
            else f"gpucourse ssh {deployment.module} -- \"sinfo -N -o '%N %c %G'\" shows what each node has",
        )
    down = [node for node in fitting if not node.usable]
    usable = enough - sum(node.count for node in down)
    if down and nodes > usable:
        node_states = "; ".join(_describe_state(node) for node in down[:8])
        raise MissingError(
            f"{nodes} nodes are needed, but only {usable} of {enough} in {name} accept jobs: {node_states}",
            hint=_advise_down(deployment, down[0], deploy),
        )
    for node in down[:8]:
        watch(Note(text=f"{_describe_state(node)}; the others are enough", level="warning"))


def _describe_state(node: ComputeNode) -> str:
    """Return the state of a node, or of several equal ones, with Slurm's reason."""
    return f"{node.name} {'is' if node.count == 1 else 'are'} {node.state}{f' ({node.reason})' if node.reason else ''}"


def _advise_down(deployment: Deployment, node: ComputeNode, deploy: str) -> str:
    """Return what to type if too few nodes accept jobs. Only the administrator of a cluster can resume its nodes."""
    if deployment.runs_as_jobs:
        return "wait until they are back, name another partition (--slurm partition=NAME), or ask the administrator"
    return f"{f'{deploy} repairs it; or ' if deploy else ''}on the head: scontrol update nodename={node.name} state=resume"


def hosts_of(deployment: Deployment | None) -> frozenset[str] | None:
    """Return Slurm's names of the nodes on which jobs run; in a lab, these are the names in its inventory.

    Return None for a cluster that already existed: its inventory lists only login machines, and other people named its nodes.
    """
    if deployment is None or deployment.inventory is None or deployment.uses_existing_machines:
        return None
    return frozenset(node.name for node in deployment.inventory.nodes)


def has_ended(row: JobRow) -> bool:
    """Return whether the job is over according to Slurm."""
    from gpucourse.remote.agent.slurm.words import ENDED, phase

    return phase(row.state) == ENDED


def describe_wait(record: RunRecord) -> str:
    """Return why the jobs of a run are waiting, and when Slurm expects the first of them to start. Return an empty string if
    no job waits, or if one runs.
    """
    from gpucourse.remote.agent.slurm.words import explain_reason

    if record.slurm is None or not record.is_waiting:
        return ""
    row = next(row for row in record.slurm.jobs if not has_ended(row))
    meaning = explain_reason(row.reason)
    expected = f"; expected to start at {row.expected.replace('T', ' ')}, the cluster's time" if row.expected else ""
    reason = f" ({row.reason})" if row.reason else ""
    jobs = "1 job is" if row.ahead == 1 else f"{row.ahead} jobs are"
    place = f"; {jobs} before it in the queue" if row.ahead else ""
    return f"job {row.job} is {row.state}{reason}{f': {meaning}' if meaning else ''}{place}{expected}"


def ending_of(row: JobRow) -> Ending:
    """Return how the job of a terminal session ended.

    A failed job counts as exited, because the shell exits with the code of its last command, which does not describe the
    session.
    """
    from gpucourse.remote.agent.slurm.words import ending

    return "exited" if row.state == "FAILED" else cast("Ending", ending(row.state))


def make_slurm_record(plan: LaunchPlan) -> SlurmRun | None:
    """Return Slurm's part of a new record; None for a plan without Slurm."""
    if plan.batch is None:
        return None
    hours = count_max_gpu_hours(plan) or 0.0
    return SlurmRun(partition=plan.batch.partition, nodes=plan.batch.nodes, gpus=plan.batch.gpus, max_gpu_hours=hours)


def keep_files(plan: LaunchPlan, files: RunPaths) -> None:
    """Write the submitted batch files into the run's folder, in the form that sbatch accepts."""
    from gpucourse.storage import write_text

    for file in plan.batch.files if plan.batch else ():
        write_text(files.batch(file.name), file.text)
    if plan.batch and plan.batch.setup:
        write_text(files.batch_setup, plan.batch.setup)


def add_metrics(
    metrics: dict[str, Any] | None, record: RunRecord, files: RunPaths, watch: Watcher = ignore_event
) -> dict[str, Any] | None:
    """Return the metrics, with Slurm's data about the jobs under `slurm`.

    The data of each job includes the content of its own `job-NUMBER.json`. `watch` receives a note about each file that cannot
    be used.
    """
    if record.slurm is None:
        return metrics
    folder = files.node_outputs(record.nodes[0])
    if record.slurm.held is not None:
        return _session(record.slurm, _read_job_metrics(folder, "inference.json", watch))
    jobs = [_describe_job(row, _read_job_metrics(folder, f"job-{row.job}.json", watch)) for row in record.slurm.jobs]
    queue = _read_job_metrics(folder, "queue.json", watch).get("queue")
    queue = [row for row in queue if isinstance(row, dict)] if isinstance(queue, list) else []
    if record.own_script:
        return metrics  # it is not judged, and keeps its own metrics
    waiting = [row for row in queue if row.get("state") == "PENDING"]
    several = len(record.slurm.jobs) > 1
    started_jobs = [job for job in jobs if job.get("node") and not job["asked"]]
    slurm_metrics = {
        "jobs": jobs,
        "started_jobs": started_jobs,
        "most_at_once": _count_most_at_once([row for row in record.slurm.jobs if row.file == record.slurm.jobs[0].file]),
        "output_files": sum(1 for _, rank in files.all_logs() if rank is not None),
        "queue": queue,
        "waiting": len(waiting) if queue else None,
        "waiting_with_reason": sum(row.get("reason") not in (None, "", "None") for row in waiting) if queue else None,
        "cancelled_on_purpose": sum(row.asked and row.state == "CANCELLED" for row in record.slurm.jobs) if several else None,
    }
    return {**(metrics or {}), "slurm": slurm_metrics}


def _session(run: SlurmRun, inference: dict[str, Any]) -> dict[str, Any]:
    allocation = asdict(run.held) if run.held else {}
    return {"accuracy_percent": None, **inference, "session": [{**_row_to_dict(row), **allocation} for row in run.jobs]}


def _read_job_metrics(folder: Path, name: str, watch: Watcher) -> dict[str, Any]:
    """Return the content of a file that a job wrote; empty if there is none. If a file cannot be used, a note names it."""
    try:
        document = read_metrics(folder / relative_name(name))
    except (OutsideError, MissingError) as error:
        watch(Note(text=f"a job's measurements are not used: {error}", level="warning"))
        return {}
    return document if isinstance(document, dict) else {}


def _describe_job(row: JobRow, metrics: dict[str, Any]) -> dict[str, Any]:
    """Return a job in the form for checks and tables: its own metrics, overridden by Slurm's data."""
    from gpucourse.remote.agent.slurm.words import hosts

    return {**metrics, **_row_to_dict(row), "nodes": len(hosts(row.node))}


def _count_most_at_once(rows: list[JobRow]) -> int | None:
    """Return the largest number of jobs that ran at the same moment, or None if no job ran.

    Slurm reports times in whole seconds, so a job that ran for less than a second is counted at its start.
    """
    spans = [(row.started, row.ended) for row in rows if row.node and row.started and row.ended]
    counts = (sum(start <= moment < end for start, end in spans) for moment, _ in spans)
    return max((max(1, count) for count in counts), default=None)  # a job that ran for less than a second counts as well


def _row_to_dict(row: JobRow) -> dict[str, Any]:
    return {key: value for key, value in asdict(row).items() if value is not None}
