"""Runs under Slurm: choosing and checking the batch file or the plan, and recording how the jobs ended.

A batch file that the learner wrote is submitted once its judge passes it. A job that the cluster can never run is refused.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from gpucourse.context import Context
from gpucourse.errors import CheckFailed, MissingError, UsageError
from gpucourse.launch import own_batch
from gpucourse.launch import slurm as batch
from gpucourse.launch.launcher import ClusterFacts, LaunchRequest, WrittenBatch, find_launcher
from gpucourse.model.deployment import Deployment
from gpucourse.model.event import Note, Watcher, ignore_event
from gpucourse.model.manifest import LearnerPart
from gpucourse.model.node import Node
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import JobRow, SlurmRun
from gpucourse.outside.names import OutsideError, relative_name
from gpucourse.outside.slurm_options import read_file
from gpucourse.runs import parts
from gpucourse.runs.resolve import ResolvedRun
from gpucourse.workspace.files import read_metrics
from gpucourse.workspace.paths import RunPaths

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet
    from gpucourse.remote.slurm_client import Partition, SlurmCluster

LOCAL_THREADS = 1  # the nodes of a simulated cluster share the cores of one machine

Ending = Literal["exited", "cancelled", "timed_out", "lost"]


def find_written_batch(context: Context, run: ResolvedRun) -> WrittenBatch | None:
    """Return the learner's batch file for this run. Return None if the course's own file is submitted.

    The course's file is submitted if the exercise has no such part, if the part is still open, or if another script or launcher
    was typed. Raises CheckFailed with the reason if the learner's file is wrong; nothing is then submitted. Raises
    MissingError.
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


def plan_on(watch: Watcher, fleet: Fleet, request: LaunchRequest, run: ResolvedRun, deployment: Deployment) -> LaunchPlan:
    """Ask the cluster of this deployment for its resources, refuse what it can never provide, then plan."""
    from gpucourse.remote.slurm_client import cluster

    head = fleet.nodes[0]
    if run.is_own_batch and run.request.script is not None:
        return _plan_own_batch(request, run, run.request.script, head, cluster(fleet.link(head)))
    nodes = batch.nodes_of(request, run.request.nodes)
    slurm_cluster = cluster(fleet.link(head))
    partition = _choose_partition(request, slurm_cluster)
    gpus = choose_gpus(request, partition, nodes)
    _check_nodes(watch, request, partition, nodes, gpus, deploy=_deploy(deployment))
    facts = ClusterFacts(
        module=run.lab.id,
        partition=partition.name,
        nodes=nodes,
        threads=LOCAL_THREADS if head.is_simulated else None,
        gpus=gpus,
        python=_python_of(deployment),
    )
    return run.launcher.plan(request, (head,), facts)


def _plan_own_batch(
    request: LaunchRequest, run: ResolvedRun, script: Path, head: Node, slurm_cluster: SlurmCluster
) -> LaunchPlan:
    """Return the plan for a learner's batch file. Only its partition is checked here; sbatch checks everything else."""
    batch_file = own_batch.read(script)
    requested_partition = batch.partition_of(request)
    partition = requested_partition or slurm_cluster.batch_partition or batch_file.read_option("partition")
    if partition and slurm_cluster.partition(partition) is None:
        raise _make_partition_error(partition, slurm_cluster, f"gpucourse run --script {script}")
    return own_batch.plan(
        request,
        head,
        batch_file,
        nodes=run.request.nodes,
        partition=requested_partition,
        default=slurm_cluster.default.name if slurm_cluster.default else "",
        login=slurm_cluster.batch_partition,
        time_s=run.request.timeout_s,
        module=run.lab.id,
    )


def _make_partition_error(name: str, slurm_cluster: SlurmCluster, command: str) -> UsageError:
    names = ", ".join(partition.name for partition in slurm_cluster.partitions) or "none"
    default = next((partition.name for partition in slurm_cluster.partitions if partition.default), "NAME")
    return UsageError(f"the cluster has no partition '{name}'; it has: {names}", hint=f"{command} --set partition={default}")


def _choose_partition(request: LaunchRequest, slurm_cluster: SlurmCluster) -> Partition:
    """Return the partition for the job: the one that was named, otherwise the cluster's default.

    For the course's own files, a partition called `gpu` comes before the default. Raises UsageError if the partition does not
    exist or is down.
    """
    is_terminal = find_launcher(request.launcher).is_terminal
    login = slurm_cluster.session_partition if is_terminal else slurm_cluster.batch_partition
    is_written = request.written_batch is not None
    name = batch.partition_of(request, login) or ("" if is_written else batch.PARTITION)
    partition = slurm_cluster.partition(name)
    if partition is None and (not name or (name == batch.PARTITION and not is_written)):
        partition = slurm_cluster.default
    if partition is None:
        raise _make_partition_error(name, slurm_cluster, f"gpucourse run {request.exercise.id}")
    if not partition.open:
        raise UsageError(
            f"the partition {partition.name} is down: it accepts no jobs", hint="sinfo on the head shows the others"
        )
    return partition


def choose_gpus(request: LaunchRequest, partition: Partition, nodes: int) -> int:
    """Return how many GPUs the job gets on each node.

    An exercise that was not written for Slurm gets one GPU per process, as far as the nodes have enough.
    """
    has = sorted((node.gpus for node in partition.nodes), reverse=True)
    if request.exercise.launch.slurm is None:
        available = min(has[:nodes], default=0)
        return min(available, batch.tasks_of(request, available))
    return request.exercise.launch.slurm_request.gpus if has and has[0] else 0


def _python_of(deployment: Deployment) -> str:
    """Return the Python of the nodes on which jobs run, if it differs from the head's. Otherwise, return an empty text."""
    if deployment.inventory is None:
        return ""
    head = deployment.inventory.head
    return next((n.python for n in deployment.inventory.nodes if n.role == "worker" and n.python != head.python), "")


def _deploy(deployment: Deployment) -> str:
    """Return the command that enlarges this lab. For a cluster that already existed, return an empty text."""
    return "" if deployment.uses_existing_machines else f"gpucourse deploy {deployment.module}{deployment.flag}"


def _check_nodes(watch: Watcher, request: LaunchRequest, partition: Partition, nodes: int, gpus: int, *, deploy: str) -> None:
    """Refuse a job that can never start. The error names nodes that are down, with Slurm's reason.

    `deploy`: the command that repairs the lab.
    """
    name = partition.name
    if not gpus and request.exercise.launch.slurm_request.gpus:
        text = f"no node of the partition {name} has a GPU that Slurm knows of (sinfo -o '%N %G'); the jobs run without one"
        watch(Note(text=text, level="warning"))
    tasks = batch.tasks_of(request, gpus)
    fitting = [node for node in partition.nodes if node.gpus >= gpus and node.cores >= tasks]
    if nodes > len(fitting):
        size = (f"{gpus} GPU each" if gpus else "", f"{tasks} cores each" if tasks > 1 else "")
        has = " and ".join(filter(None, size))
        hint = f"{_format_command(request)} --nodes {len(fitting)}" + (
            f"; a larger lab: {deploy} --nodes {nodes}" if deploy else ""
        )
        raise UsageError(
            f"{nodes} node{'s were' if nodes > 1 else ' was'} asked for, but the partition {name} has {len(fitting)} "
            f"node{'s' if len(fitting) != 1 else ''}{f' with {has}' if has else ''}",
            hint=hint if fitting else "gpucourse ssh 2 -- \"sinfo -N -o '%N %c %G'\" shows what each node has",
        )
    down = [node for node in fitting if not node.usable]
    if down and nodes > len(fitting) - len(down):
        node_states = "; ".join(f"{node.name} is {node.state}{f' ({node.reason})' if node.reason else ''}" for node in down[:8])
        raise MissingError(
            f"{nodes} nodes are needed, but only {len(fitting) - len(down)} of {len(fitting)} in {name} accept jobs: "
            f"{node_states}",
            hint=(f"{deploy} repairs it; or " if deploy else "")
            + f"on the head: scontrol update nodename={down[0].name} state=resume",
        )
    for node in down[:8]:
        reason = f" ({node.reason})" if node.reason else ""
        watch(Note(text=f"{node.name} is {node.state}{reason}; the others are enough", level="warning"))


def _format_command(request: LaunchRequest) -> str:
    """Return the command that was typed, including the launcher if the user chose one."""
    differs = request.launcher != request.exercise.launch.kind
    return f"gpucourse run {request.exercise.id}{f' --launcher {request.launcher}' if differs else ''}"


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


def ending_of(row: JobRow) -> Ending:
    """Return how the job of a terminal session ended.

    A failed job counts as exited: the shell's exit code is that of its last command and does not describe the session.
    """
    from gpucourse.remote.agent.slurm.words import ending

    return "exited" if row.state == "FAILED" else cast("Ending", ending(row.state))


def make_slurm_record(plan: LaunchPlan) -> SlurmRun | None:
    """Return Slurm's part of a new record; None for a plan without Slurm."""
    if plan.batch is None:
        return None
    return SlurmRun(partition=plan.batch.partition, nodes=plan.batch.nodes, gpus=plan.batch.gpus)


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

    Slurm's clock counts whole seconds.
    """
    spans = [(row.started, row.ended) for row in rows if row.node and row.started and row.ended]
    counts = (sum(start <= moment < end for start, end in spans) for moment, _ in spans)
    return max((max(1, count) for count in counts), default=None)  # a job that ran for less than a second counts as well


def _row_to_dict(row: JobRow) -> dict[str, Any]:
    return {key: value for key, value in asdict(row).items() if value is not None}
