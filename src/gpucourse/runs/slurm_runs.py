"""What is special about a run under Slurm: which lab it is on, what the cluster can give, and how its jobs ended."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.launch import own_batch, planning
from gpucourse.launch import slurm_plan as launcher
from gpucourse.model.deployment import Deployment
from gpucourse.model.event import Note, Watcher, ignore_event
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.node import Node
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import SLURM, JobRow, SlurmRun
from gpucourse.outside.names import OutsideError, relative_name
from gpucourse.runs.prepare import RunRequest
from gpucourse.workspace.files import read_metrics
from gpucourse.workspace.paths import RunPaths

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet
    from gpucourse.remote.slurm_client import ComputeNode, Partition, SlurmCluster

Ending = Literal["exited", "cancelled", "timed_out", "lost"]
ENDINGS: tuple[Ending, ...] = ("exited", "cancelled", "timed_out", "lost")
LOCAL_THREADS = 1  # the nodes of a simulated cluster share the cores of one machine


def by_slurm(exercise: Exercise, run_request: RunRequest) -> bool:
    """Whether this order goes to Slurm."""
    return (run_request.launcher or exercise.launch.kind) in SLURM


def is_session(exercise: Exercise, run_request: RunRequest) -> bool:
    """Whether this order opens a terminal on a node."""
    return run_request.launcher is None and exercise.launch.kind == "slurm-pty"


def lab_of(context: Context, module: Module) -> Module:
    """The module whose lab has a Slurm: this one, or the first of the course. Raises MissingError if there is none."""
    slurm_module = next(
        (candidate for candidate in (module, *context.catalog.modules) if candidate.lab.scheduler == "slurm"), None
    )
    if slurm_module is None:
        raise MissingError("no module of this course has a lab with Slurm", hint="gpucourse list shows the modules")
    return slurm_module


def fleet_of(context: Context, deployment: Deployment, nodes: tuple[Node, ...], *, scheduled: bool) -> Fleet:
    """The nodes, not connected yet; for a run that Slurm carries out, in the folder that all machines share."""
    from gpucourse.remote.fleet import Fleet
    from gpucourse.remote.links import SharedTransport

    if scheduled and deployment.shared:
        return Fleet(SharedTransport(context.transport, deployment.shared), nodes)
    return Fleet(context.transport, nodes)


def hosts_of(deployment: Deployment | None) -> frozenset[str] | None:
    """The nodes that jobs run on, by Slurm's names, which a lab takes from its inventory. None for a cluster that exists
    already: its inventory holds the machines that are logged into, and other people decide what its nodes are called."""
    if deployment is None or deployment.inventory is None or deployment.uses_existing_machines:
        return None
    return frozenset(node.name for node in deployment.inventory.nodes)


def _python_of(deployment: Deployment) -> str:
    """The Python of the nodes that jobs run on, where it is another than the head's; else empty."""
    if deployment.inventory is None:
        return ""
    head = deployment.inventory.head
    return next((n.python for n in deployment.inventory.nodes if n.role == "worker" and n.python != head.python), "")


def plan_on(
    context: Context, fleet: Fleet, wanted: planning.LaunchRequest, run_request: RunRequest, lab: Module, deployment: Deployment
) -> LaunchPlan:
    """Ask the cluster of this deployment what it has, refuse what it can never give, then plan."""
    from gpucourse.remote.slurm_client import cluster

    head = fleet.nodes[0]
    if run_request.script is not None and (
        own_batch.is_batch(run_request.script) or own_batch.is_shell_script(run_request.script)
    ):
        return _own(wanted, run_request, lab, head, own_batch.read(run_request.script), cluster(fleet.link(head)))
    nodes = launcher.nodes_of(wanted, run_request.nodes)
    slurm_cluster = cluster(fleet.link(head))
    partition = _partition(wanted, slurm_cluster)
    gpus = _gpus(wanted, partition, nodes)
    _enough(context, wanted, partition, nodes, gpus, deploy=_deploy(deployment))
    place = launcher.ClusterFacts(
        partition=partition.name, threads=LOCAL_THREADS if head.is_simulated else None, gpus=gpus, python=_python_of(deployment)
    )
    return launcher.plan(wanted, head, nodes, place, run_id="dry-run", module=lab.id)


def has_ended(row: JobRow) -> bool:
    """Whether Slurm says that the job is over."""
    from gpucourse.remote.agent.slurm_words import ENDED, phase

    return phase(row.state) == ENDED


def ending_of(row: JobRow) -> Ending:
    """How a terminal's job ended. Its shell ends with the code of its last command, which says nothing about the session."""
    from gpucourse.remote.agent.slurm_words import ending

    reason = "exited" if row.state == "FAILED" else ending(row.state)
    return next((known for known in ENDINGS if known == reason), "lost")


def make_slurm_record(plan: LaunchPlan) -> SlurmRun | None:
    """The part of a new record that Slurm adds; None for a plan without it."""
    if plan.batch is None:
        return None
    return SlurmRun(partition=plan.batch.partition, nodes=plan.batch.nodes, gpus=plan.batch.gpus)


def keep_files(plan: LaunchPlan, files: RunPaths) -> None:
    """Keep what is submitted in the run's folder, as files that sbatch takes."""
    from gpucourse.storage import write_text

    for file in plan.batch.files if plan.batch else ():
        write_text(files.batch(file.name), file.text)
    if plan.batch and plan.batch.setup:
        write_text(files.batch_setup, plan.batch.setup)


def add_metrics(
    metrics: dict[str, Any] | None, record: RunRecord, files: RunPaths, watch: Watcher = ignore_event
) -> dict[str, Any] | None:
    """The metrics with what Slurm says of the jobs under `slurm`, each with what the job itself wrote as `job-NUMBER.json`.
    `watch` hears of a file that cannot be used."""
    if record.slurm is None:
        return metrics
    folder = files.node_outputs(record.nodes[0])
    if record.slurm.held is not None:
        return _session(record.slurm, _read_job_metrics(folder, "inference.json", watch))
    jobs = [_describe_job(row, _read_job_metrics(folder, f"job-{row.job}.json", watch)) for row in record.slurm.jobs]
    queue = _read_job_metrics(folder, "queue.json", watch).get("queue")
    queue = [row for row in queue if isinstance(row, dict)] if isinstance(queue, list) else []
    if record.own_script:
        return metrics  # it is not judged, and has what it wrote itself
    waiting = [row for row in queue if row.get("state") == "PENDING"]
    several = len(record.slurm.jobs) > 1
    started_jobs = [job for job in jobs if job.get("node") and not job["asked"]]
    told = {
        "jobs": jobs,
        "started_jobs": started_jobs,
        "most_at_once": _count_most_at_once([row for row in record.slurm.jobs if row.file == record.slurm.jobs[0].file]),
        "output_files": sum(1 for _, rank in files.all_logs() if rank is not None),
        "queue": queue,
        "waiting": len(waiting) if queue else None,
        "waiting_with_reason": sum(row.get("reason") not in (None, "", "None") for row in waiting) if queue else None,
        "cancelled_on_purpose": sum(row.asked and row.state == "CANCELLED" for row in record.slurm.jobs) if several else None,
    }
    return {**(metrics or {}), "slurm": told}


def _session(run: SlurmRun, inference: dict[str, Any]) -> dict[str, Any]:
    held = asdict(run.held) if run.held else {}
    return {"accuracy_percent": None, **inference, "session": [{**_row_to_dict(row), **held} for row in run.jobs]}


def _own(
    wanted: planning.LaunchRequest,
    run_request: RunRequest,
    lab: Module,
    head: Node,
    own: own_batch.OwnBatch,
    slurm_cluster: SlurmCluster,
) -> LaunchPlan:
    """The plan for a batch file of the learner's own. What it wishes for is between it and sbatch, but for a partition."""
    typed, named = launcher.partition_of(wanted)
    default = next((partition.name for partition in slurm_cluster.partitions if partition.default), "")
    chosen = typed if named else own.partition
    if chosen and slurm_cluster.partition(chosen) is None:
        raise _no_partition(chosen, slurm_cluster, f"gpucourse run --script {run_request.script}")
    return own_batch.plan(
        wanted,
        head,
        own,
        nodes=run_request.nodes,
        partition=typed if named else "",
        default=default,
        time_s=run_request.timeout_s,
        module=lab.id,
    )


def _no_partition(name: str, slurm_cluster: SlurmCluster, again: str) -> UsageError:
    known = ", ".join(partition.name for partition in slurm_cluster.partitions) or "none"
    default = next((partition.name for partition in slurm_cluster.partitions if partition.default), "NAME")
    return UsageError(f"the cluster has no partition '{name}'; it has: {known}", hint=f"{again} --set partition={default}")


def _partition(wanted: planning.LaunchRequest, slurm_cluster: SlurmCluster) -> Partition:
    name, named = launcher.partition_of(wanted)
    partition = slurm_cluster.partition(name)
    default = next((candidate for candidate in slurm_cluster.partitions if candidate.default), None)
    if partition is None and ((named and name != launcher.PARTITION) or default is None):
        raise _no_partition(name, slurm_cluster, f"gpucourse run {wanted.exercise.id}")
    chosen = partition or default
    if chosen is None:
        raise AssertionError(name)
    if not chosen.open:
        raise UsageError(f"the partition {chosen.name} is down: it takes no jobs", hint="sinfo on the head shows the others")
    return chosen


def _gpus(wanted: planning.LaunchRequest, partition: Partition, nodes: int) -> int:
    """GPUs of each node for the job. An exercise that was not written for Slurm takes what the nodes have."""
    asked = launcher.gpus_of(wanted)
    has = sorted((node.gpus for node in partition.nodes), reverse=True)
    if wanted.exercise.launch.slurm is None:
        return min(has[:nodes], default=0)
    return asked if has and has[0] else 0


def _deploy(deployment: Deployment) -> str:
    """What to type for more of this lab; nothing for a cluster that someone else runs."""
    return "" if deployment.uses_existing_machines else f"gpucourse deploy {deployment.module}{deployment.flag}"


def _enough(
    context: Context, wanted: planning.LaunchRequest, partition: Partition, nodes: int, gpus: int, *, deploy: str
) -> None:
    """Refuse what can never start. Nodes that are down are named with Slurm's reason; `deploy` is what mends a lab of one's
    own."""
    name = partition.name
    if not gpus and launcher.gpus_of(wanted):
        text = f"no node of the partition {name} has a GPU that Slurm knows of (sinfo -o '%N %G'); the jobs run without"
        context.watch(Note(text=text, level="warning"))
    fitting = _large_enough(wanted, partition, gpus)
    if nodes > len(fitting):
        has = f"{len(fitting)} node{'s' if len(fitting) != 1 else ''}{f' with {gpus} GPU each' if gpus else ''}"
        raise UsageError(
            f"{nodes} nodes were asked for, and the partition {name} has {has}",
            hint=f"{_again(wanted)} --nodes {len(fitting)}" + (f"; a larger lab: {deploy} --nodes {nodes}" if deploy else ""),
        )
    down = [node for node in fitting if not node.usable]
    if down and nodes > len(fitting) - len(down):
        named = "; ".join(f"{node.name} is {node.state}{f' ({node.reason})' if node.reason else ''}" for node in down[:8])
        raise MissingError(
            f"{nodes} nodes are needed, and {len(fitting) - len(down)} of {len(fitting)} in {name} take jobs: {named}",
            hint=(f"{deploy} repairs it; or " if deploy else "")
            + f"on the head: scontrol update nodename={down[0].name} state=resume",
        )
    for node in down[:8]:
        why = f" ({node.reason})" if node.reason else ""
        context.watch(Note(text=f"{node.name} is {node.state}{why}; the others are enough", level="warning"))


def _large_enough(wanted: planning.LaunchRequest, partition: Partition, gpus: int) -> list[ComputeNode]:
    """The nodes with as many GPUs as each node of the job needs. Raises UsageError if no node has them, or the cores."""
    exercise, name = wanted.exercise.id, partition.name
    tasks, cores = launcher.tasks_of(wanted, gpus), max((node.cores for node in partition.nodes), default=1)
    if tasks > cores:
        raise UsageError(
            f"{tasks} processes on each node were asked for, and no node of the partition {name} has more than {cores} cores",
            hint="gpucourse ssh 2 -- sinfo -N -o '%N %c' shows what each node has; one process per GPU is usual",
        )
    fitting = [node for node in partition.nodes if node.gpus >= gpus]
    if gpus and not fitting:
        most = max((node.gpus for node in partition.nodes), default=0)
        raise UsageError(
            f"{exercise} asks for {gpus} GPUs on each node, and no node of the partition {name} has more than {most}",
            hint="gpucourse ssh 2 -- sinfo -N -o '%N %G' shows what each node has",
        )
    return fitting


def _again(wanted: planning.LaunchRequest) -> str:
    """The command that was typed, as far as it chose the launcher."""
    own = wanted.launcher != wanted.exercise.launch.kind
    return f"gpucourse run {wanted.exercise.id}{f' --launcher {wanted.launcher}' if own else ''}"


def _read_job_metrics(folder: Path, name: str, watch: Watcher) -> dict[str, Any]:
    """What a job wrote into a file; empty if there is none. One that cannot be used is named, and its run continues."""
    try:
        document = read_metrics(folder / relative_name(name))
    except (OutsideError, MissingError) as error:
        watch(Note(text=f"what a job measured is not used: {error}", level="warning"))
        return {}
    return document if isinstance(document, dict) else {}


def _describe_job(row: JobRow, measured: dict[str, Any]) -> dict[str, Any]:
    """A job as checks and tables read it: what it wrote, then Slurm's words, which overrule that."""
    from gpucourse.remote.agent.slurm_words import hosts

    return {**measured, **_row_to_dict(row), "nodes": len(hosts(row.node))}


def _count_most_at_once(rows: list[JobRow]) -> int | None:
    """How many jobs ran at the same moment at most, by Slurm's clock, which counts whole seconds. None if none ran."""
    spans = [(row.started, row.ended) for row in rows if row.node and row.started and row.ended]
    counts = (sum(begun <= moment < ended for begun, ended in spans) for moment, _ in spans)
    return max((max(1, count) for count in counts), default=None)  # one that ran within a second ran all the same


def _row_to_dict(row: JobRow) -> dict[str, Any]:
    return {key: value for key, value in asdict(row).items() if value is not None}
