"""A cluster that Slurm runs, as the client sees it: what it has, what is handed to it, what its jobs came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gpucourse.model.plan import LaunchPlan
from gpucourse.model.slurm import JobRow
from gpucourse.ports import Link
from gpucourse.remote import answers
from gpucourse.remote.agent.slurm_words import usable

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet


@dataclass(frozen=True, kw_only=True)
class ComputeNode:
    """A node as sinfo shows it. `state` and `reason` are Slurm's words."""

    name: str
    state: str
    gpus: int
    cores: int
    reason: str = ""

    @property
    def usable(self) -> bool:
        """Whether it takes jobs, now or when those on it have ended."""
        return usable(self.state)


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A queue and its nodes. `default`: jobs that name none go there. `open`: it takes jobs."""

    name: str
    default: bool
    open: bool
    nodes: tuple[ComputeNode, ...]


@dataclass(frozen=True, kw_only=True)
class SlurmCluster:
    """What a cluster has. `home`: where the folders of runs lie on the node that takes jobs."""

    version: str
    user: str
    home: str
    partitions: tuple[Partition, ...]

    def partition(self, name: str) -> Partition | None:
        """The partition of that name, or None."""
        return next((partition for partition in self.partitions if partition.name == name), None)


def cluster(link: Link) -> SlurmCluster:
    """Ask the node that takes jobs what its cluster has. Raises InfrastructureError where Slurm does not answer, MissingError
    where there is none."""
    from gpucourse.remote import jobs

    answer = jobs.call(link, "cluster", answers.ClusterOf, stdin=b"{}")
    partitions: dict[str, list[answers.ClusterNode]] = {}
    for line in answer.nodes:
        partitions.setdefault(line.partition, []).append(line)
    return SlurmCluster(
        version=answer.version,
        user=answer.user,
        home=answer.home,
        partitions=tuple(_partition(name, lines) for name, lines in partitions.items()),
    )


@dataclass(frozen=True, kw_only=True)
class SessionState:
    """A terminal's job as Slurm sees it right now: its row (None before there is one), the GPUs that are held for it, and the
    folders on the node that takes jobs: where its shell starts, and where it may leave results."""

    row: JobRow | None
    gpus: int
    work: str
    outputs: str


def session(link: Link, run_id: str) -> SessionState:
    """Look at the job of a terminal."""
    from gpucourse.remote import jobs

    answer = jobs.call(link, "session", answers.SessionOf, run_id)
    row = _row(answer.rows[0]) if answer.rows else None
    return SessionState(row=row, gpus=answer.held, work=answer.work, outputs=answer.outputs)


def lay_out(fleet: Fleet, plan: LaunchPlan) -> None:
    """Bring the files of a plan into the run's folder, for a terminal that will start there."""
    from gpucourse.remote import jobs
    from gpucourse.remote.push import parcels, push

    wrapped = parcels(plan.uploads)
    link = fleet.link(fleet.nodes[0])
    push(link, wrapped)
    files = [parcel.entry() for parcel in wrapped]
    jobs.start(link, {"run_id": plan.run_id, "exercise": plan.exercise, "files": files, **spec(plan)})


def spec(plan: LaunchPlan) -> dict[str, object]:
    """The part of a run's specification that its agent hands to Slurm; nothing for a plan without."""
    if plan.batch is None:
        return {}
    batch = plan.batch
    files = [
        {
            "name": file.name,
            "text": file.text,
            "copies": file.copies,
            "tasks": file.tasks,
            "after": file.after,
            "flags": list(file.flags),
            "arguments": list(file.arguments),
            "error": file.error,
            "job_name": (job_name(file.text) or f"{file.name}.sbatch") if file.text else file.name,
        }
        for file in batch.files
    ]
    return {
        "slurm": {
            "files": files,
            "spread": batch.spread,
            "ranks": plan.world_size,
            "show_queue": batch.show_queue,
            "cancel_last": batch.cancel_last,
            "session": batch.session,
            "module": batch.module,
            "setup": batch.setup,
        }
    }


def job_name(text: str) -> str:
    """The name that a file for sbatch gives its job."""
    marked = "#SBATCH --job-name="
    return next((line[len(marked) :] for line in text.splitlines() if line.startswith(marked)), "")


def rows(how: answers.NodeEnd) -> list[JobRow]:
    """The jobs in what the agent says of a run's end; none for a run without Slurm."""
    return [_row(row) for row in how.jobs]


def _row(row: answers.JobAnswer) -> JobRow:
    return JobRow(**asdict(row))


def _partition(name: str, lines: Sequence[answers.ClusterNode]) -> Partition:
    nodes = (
        ComputeNode(name=line.node, state=line.state, gpus=line.gpus, cores=line.cores, reason=line.reason) for line in lines
    )
    return Partition(name=name, default=lines[0].default, open=lines[0].open, nodes=tuple(nodes))
