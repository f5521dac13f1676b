"""The results of jobs in Slurm, as a part of a run's record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

MAX_COUNT = 1_000_000
Count = Annotated[int, Meta(ge=0, lt=MAX_COUNT)]
"""A number of nodes, GPUs or restarts. Slurm options may have up to six digits."""


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """One job, or one task of an array.

    `state` and `reason`: Slurm's own words.
    `code`: the exit code as in the shell, or None if it is not known.
    `asked`: whether the exercise itself cancelled the job.
    `ahead`: the number of jobs ahead of a waiting job, or 0 if it is not known.
    `expected`: when Slurm expects a waiting job to start, or an empty string.
    `cpu_hours`, `gpu_hours`: what all starts of the job have used; None if it is not known.
    `cancelled_by`: the number of the user on the cluster who cancelled the job, or an empty string.
    Times are those of the cluster's own clock.
    """

    row: int
    job: str
    file: str
    state: str
    reason: str = ""
    node: str = ""
    code: int | None = None
    submitted: str = ""
    started: str = ""
    ended: str = ""
    waited_s: float | None = None
    ran_s: float | None = None
    restarts: Count = 0
    asked: bool = False
    expected: str = ""
    ahead: Count = 0
    cpu_hours: float | None = None
    gpu_hours: float | None = None
    cancelled_by: str = ""


@dataclass(frozen=True, kw_only=True)
class LaterJob:
    """A job that a run's own job submitted and that had not ended when Slurm was last asked: its number, name and state."""

    job: str
    name: str = ""
    state: str = ""


@dataclass(kw_only=True)
class SlurmSession:
    """Slurm's report on a terminal on a node: the GPUs held for it while it was open, and after it closed."""

    gpus_held: int = 0
    gpus_after: int | None = None
    held_s: float | None = None


@dataclass(kw_only=True)
class SlurmRun:
    """Slurm's part of a run's record.

    `max_gpu_hours`: the most GPU hours that the run can use within its time limit.
    `later`: running jobs that the run's own jobs submitted. The next command about the run collects their output.
    """

    partition: str
    nodes: Count
    gpus: Count
    max_gpu_hours: float = 0.0
    jobs: list[JobRow] = field(default_factory=list)
    later: list[LaterJob] = field(default_factory=list)
    held: SlurmSession | None = None

    def count_hours(self, kind: Literal["cpu_hours", "gpu_hours"]) -> float | None:
        """Return the core hours or the GPU hours of all jobs, or None if they are not known for each of them."""
        hours: list[float | None] = [getattr(job, kind) for job in self.jobs]
        hours_of_jobs = [value for value in hours if value is not None]
        return sum(hours_of_jobs) if hours_of_jobs and len(hours_of_jobs) == len(hours) else None
