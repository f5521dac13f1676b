"""The differences of a run under Slurm: which lab it is on, and how its jobs ended."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.model.deployment import Deployment
from gpucourse.model.event import Note, Watcher, ignore_event
from gpucourse.model.node import Node
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import JobRow, SlurmRun
from gpucourse.outside.names import OutsideError, relative_name
from gpucourse.workspace.files import read_metrics
from gpucourse.workspace.paths import RunPaths

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet

Ending = Literal["exited", "cancelled", "timed_out", "lost"]
ENDINGS: tuple[Ending, ...] = ("exited", "cancelled", "timed_out", "lost")


def fleet_of(context: Context, deployment: Deployment, nodes: tuple[Node, ...], *, scheduled: bool) -> Fleet:
    """Return the nodes, not connected yet; for a run under Slurm, in the folder that all machines share."""
    from gpucourse.remote.fleet import Fleet
    from gpucourse.remote.links import SharedTransport

    if scheduled and deployment.shared:
        return Fleet(SharedTransport(context.transport, deployment.shared), nodes)
    return Fleet(context.transport, nodes)


def hosts_of(deployment: Deployment | None) -> frozenset[str] | None:
    """Return the nodes that jobs run on, by Slurm's names, which in a lab are those of its inventory. None for a cluster that
    exists already: its inventory holds the machines for logins, and other people name its nodes."""
    if deployment is None or deployment.inventory is None or deployment.uses_existing_machines:
        return None
    return frozenset(node.name for node in deployment.inventory.nodes)


def has_ended(row: JobRow) -> bool:
    """Return whether the job is over according to Slurm."""
    from gpucourse.remote.agent.slurm_words import ENDED, phase

    return phase(row.state) == ENDED


def ending_of(row: JobRow) -> Ending:
    """Return how a terminal's job ended. Its shell ends with the code of its last command, which shows nothing about the
    session."""
    from gpucourse.remote.agent.slurm_words import ending

    reason = "exited" if row.state == "FAILED" else ending(row.state)
    return next((known for known in ENDINGS if known == reason), "lost")


def make_slurm_record(plan: LaunchPlan) -> SlurmRun | None:
    """Return the part of a new record that Slurm adds; None for a plan without it."""
    if plan.batch is None:
        return None
    return SlurmRun(partition=plan.batch.partition, nodes=plan.batch.nodes, gpus=plan.batch.gpus)


def keep_files(plan: LaunchPlan, files: RunPaths) -> None:
    """Keep what is submitted in the run's folder, as files for sbatch."""
    from gpucourse.storage import write_text

    for file in plan.batch.files if plan.batch else ():
        write_text(files.batch(file.name), file.text)
    if plan.batch and plan.batch.setup:
        write_text(files.batch_setup, plan.batch.setup)


def add_metrics(
    metrics: dict[str, Any] | None, record: RunRecord, files: RunPaths, watch: Watcher = ignore_event
) -> dict[str, Any] | None:
    """Return the metrics with Slurm's data about the jobs under `slurm`, each with what the job itself wrote as
    `job-NUMBER.json`. `watch` receives a note about a file that cannot be used."""
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


def _read_job_metrics(folder: Path, name: str, watch: Watcher) -> dict[str, Any]:
    """Return what a job wrote into a file; empty if there is none. A file that cannot be used is named, and its run
    continues."""
    try:
        document = read_metrics(folder / relative_name(name))
    except (OutsideError, MissingError) as error:
        watch(Note(text=f"what a job measured is not used: {error}", level="warning"))
        return {}
    return document if isinstance(document, dict) else {}


def _describe_job(row: JobRow, measured: dict[str, Any]) -> dict[str, Any]:
    """Return a job as checks and tables read it: what it wrote, then Slurm's words, which overrule that."""
    from gpucourse.remote.agent.slurm_words import hosts

    return {**measured, **_row_to_dict(row), "nodes": len(hosts(row.node))}


def _count_most_at_once(rows: list[JobRow]) -> int | None:
    """Return the largest number of jobs that ran at the same moment, by Slurm's clock, which counts whole seconds. None if none
    ran."""
    spans = [(row.started, row.ended) for row in rows if row.node and row.started and row.ended]
    counts = (sum(begun <= moment < ended for begun, ended in spans) for moment, _ in spans)
    return max((max(1, count) for count in counts), default=None)  # one that ran within a second counts as well


def _row_to_dict(row: JobRow) -> dict[str, Any]:
    return {key: value for key, value in asdict(row).items() if value is not None}
