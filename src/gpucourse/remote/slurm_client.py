"""The client's side of a Slurm cluster: its nodes and partitions, the jobs to submit, and the jobs that have ended."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePosixPath
from typing import Annotated

from gpucourse.errors import InfrastructureError
from gpucourse.model.node import is_simulated
from gpucourse.model.plan import BatchFile, LaunchPlan
from gpucourse.model.slurm import JobRow, LaterJob
from gpucourse.outside.documents import Meta
from gpucourse.outside.names import printable
from gpucourse.outside.slurm_options import read_sbatch_options
from gpucourse.ports import Link
from gpucourse.remote import answers, jobs
from gpucourse.remote.agent.scratch import CACHES
from gpucourse.remote.agent.slurm.words import hosts, usable
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.patience import ANSWER_S
from gpucourse.remote.push import parcels, push

_PARTITION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")
_HOSTS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,\[\]-]{0,65535}")


@dataclass(kw_only=True)
class _LaterJobs:
    """The jobs that a run's own jobs submitted and that have not ended."""

    jobs: list[LaterJob]

    def __post_init__(self) -> None:
        self.jobs = answers.check_later_jobs(self.jobs)


@dataclass(kw_only=True)
class ComputeNode:
    """A group of identical nodes in sinfo's output. Raises ValueError for values that no cluster has.

    `name`: the name of a node, or names in Slurm's notation, such as `node[1-4]`.
    `state`, `reason`: Slurm's words.
    """

    name: str
    state: str
    gpus: Annotated[int, Meta(ge=0, le=1 << 12)]
    cores: Annotated[int, Meta(ge=0, le=1 << 16)]
    reason: str = ""
    count: Annotated[int, Meta(ge=1, le=1 << 20)] = 1
    gpu_types: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not _HOSTS.fullmatch(self.name):
            raise ValueError(f"{printable(self.name, 80)!r} is not a list of machine names")
        self.gpu_types = [printable(name, 60) for name in self.gpu_types]
        self.state, self.reason = printable(self.state, 60), printable(self.reason)

    @property
    def usable(self) -> bool:
        """Return whether the node accepts jobs, now or once its current jobs have ended."""
        return usable(self.state)


@dataclass(kw_only=True)
class Partition:
    """A queue and its nodes.

    `default`: whether jobs that name no partition run there.
    `open`: whether the partition accepts jobs.
    `max_s`: its time limit in seconds, or None if there is none.
    """

    name: str
    default: bool
    open: bool
    nodes: Sequence[ComputeNode]
    max_s: int | None = None

    def __post_init__(self) -> None:
        _check_partitions(self.name)


@dataclass(kw_only=True)
class SlurmCluster:
    """The facts about a cluster.

    `batch_partition`, `session_partition`: the partitions that the login sets for sbatch and for srun on the node that accepts
    jobs, or empty strings.
    """

    partitions: Sequence[Partition]
    batch_partition: str = ""
    session_partition: str = ""

    def __post_init__(self) -> None:
        for names in filter(None, (self.batch_partition, self.session_partition)):
            _check_partitions(names)

    @property
    def default(self) -> Partition | None:
        """Return the partition of jobs that name no partition, or None if there is no such default."""
        return next((partition for partition in self.partitions if partition.default), None)

    def partition(self, name: str) -> Partition | None:
        """Return the partition of that name, or None if the cluster lacks it. If the name contains commas, return the union of
        these partitions."""
        by_name = {partition.name: partition for partition in self.partitions}
        names = name.split(",")
        if not all(word in by_name for word in names):
            return None
        if len(names) == 1:
            return by_name[name]
        partitions = [by_name[word] for word in names]
        nodes: list[ComputeNode] = []
        known_hosts: set[str] = set()
        for group in (group for partition in partitions for group in partition.nodes):
            new_hosts = set(hosts(group.name)) - known_hosts
            nodes += [replace(group, count=len(new_hosts))] if new_hosts else []
            known_hosts |= new_hosts
        limits = [partition.max_s for partition in partitions if partition.max_s is not None]
        return Partition(
            name=name,
            default=False,
            open=any(partition.open for partition in partitions),
            nodes=nodes,
            max_s=min(limits, default=None),
        )


def _check_partitions(names: str) -> None:
    if not all(_PARTITION.fullmatch(name) for name in names.split(",")):
        raise ValueError(f"{printable(names, 80)!r} is not the name of a partition")


def cluster(link: Link) -> SlurmCluster:
    """Return the facts about its cluster from the node that accepts jobs.

    Raises InfrastructureError if Slurm does not answer, and MissingError if there is no Slurm.
    """
    return jobs.call(link, "cluster", SlurmCluster)


@dataclass(kw_only=True)
class SessionState:
    """The current state of a terminal's job.

    `rows`: the job as Slurm describes it; empty while there is no job.
    `gpus`: the number of GPUs that are held for it.
    `work`: the folder in which the shell starts. All folders are on the node that accepts jobs.
    `outputs`: the folder for results.
    `places`: folders for temporary files and caches, by the variables that name them.
    """

    rows: list[JobRow]
    gpus: Annotated[int, Meta(ge=0, le=1 << 16)]
    work: str
    outputs: str
    places: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = answers.check_rows(self.rows)
        for name, place in self.places.items():
            if name != "TMPDIR" and name not in CACHES:
                raise ValueError("it names a variable that is not in the request")
            answers.folder(place)
        answers.folder(self.work)
        answers.folder(self.outputs)

    @property
    def row(self) -> JobRow | None:
        """Return the row of the job, or None while there is no job."""
        return self.rows[0] if self.rows else None


def session(link: Link, run_id: str) -> SessionState:
    """Return the state of a terminal's job."""
    return jobs.call(link, "session", SessionState, run_id)


def lay_out(fleet: Fleet, plan: LaunchPlan) -> None:
    """Put the files of a plan into the run's folder, for a terminal that will start there."""
    wrapped = parcels(plan.uploads)
    link = fleet.link(fleet.nodes[0])
    push(link, wrapped)
    files = [parcel.entry() for parcel in wrapped]
    jobs.start(link, {"run_id": plan.run_id, "exercise": plan.exercise, "files": files, **spec(plan)})


def remove_runs(link: Link, run_ids: Sequence[str]) -> None:
    """Remove the folders of runs that have no jobs. Commands over the link start in the lab's folder. Raises
    InfrastructureError."""
    result = link.run(shlex.join(["rm", "-rf", *(f".gpucourse/jobs/{run_id}" for run_id in run_ids)]), timeout_s=ANSWER_S)
    if not result.ok:
        raise InfrastructureError(
            f"{link.node.label}: the folders of runs that did not start cannot be removed: "
            f"{printable(result.stderr.decode('utf-8', 'replace').strip()[-300:])}",
            hint="gpucourse destroy removes them",
        )


def spec(plan: LaunchPlan, array: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the part of a run's specification that its agent passes to Slurm, or an empty dict for a plan without Slurm.

    `array`: the job array that the run is a task of, if there is one.
    """
    if plan.batch is None:
        return {}
    files = [{**asdict(file), "job_name": _name_job(file)} for file in plan.batch.files]
    return {
        "slurm": {
            **asdict(plan.batch),
            "files": files,
            "spread": plan.batch.spread,
            "ranks": plan.world_size,
            "is_shared": not is_simulated(plan.mode),
            **({"array": dict(array)} if array else {}),
        }
    }


def _name_job(file: BatchFile) -> str:
    """Return the name of the file's job in the queue."""
    return (job_name(file.text) or PurePosixPath(file.file_name).name) if file.text else file.name


def job_name(text: str) -> str:
    """Return the job name that a file for sbatch sets, or an empty string if it sets none."""
    return read_sbatch_options(text).values.get("job-name", "")


def ask_later_jobs(link: Link, run_id: str) -> list[LaterJob]:
    """Return the current state of the jobs that an ended run's jobs submitted. Raises an error if Slurm does not answer."""
    return jobs.call(link, "later", _LaterJobs, run_id).jobs
