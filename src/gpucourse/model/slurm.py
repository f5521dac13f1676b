"""The results of jobs in Slurm, as a part of a run's record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=0, lt=1_000_000)]
"""A number of nodes, GPUs or restarts. Slurm options may have up to six digits."""


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """One job, or one task of an array.

    `state` and `reason`: Slurm's own words.
    `code`: as in the shell, or None if it is not known.
    `asked`: whether the exercise itself cancelled the job.
    Times are by the cluster's own clock.
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
    """Slurm's part of a run's record. `later` lists running jobs that the run's own jobs submitted. The next command about the
    run collects their output."""

    partition: str
    nodes: Count
    gpus: Count
    jobs: list[JobRow] = field(default_factory=list)
    later: list[LaterJob] = field(default_factory=list)
    held: SlurmSession | None = None
