"""The results of the jobs that were submitted to Slurm: a part of the record of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=0, lt=1_000_000)]
"""A number of nodes, GPUs or restarts. Up to six digits of a Slurm option are read."""


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """One job, or one task of an array: `state` and `reason` are Slurm's own words; `code` is as in the shell, None if it is
    not known. Times are Slurm's, by the cluster's own clock. `asked`: the exercise itself cancelled it."""

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
    """A job that a run's own job submitted, and that had not ended at the last query of Slurm: its number, name and state."""

    job: str
    name: str = ""
    state: str = ""


@dataclass(kw_only=True)
class SlurmSession:
    """Slurm's report on a terminal on a node: the GPUs held for it while it was open, and afterwards."""

    gpus_held: int = 0
    gpus_after: int | None = None
    held_s: float | None = None


@dataclass(kw_only=True)
class SlurmRun:
    """The part of a run's record that Slurm adds. `later`: jobs that its own jobs submitted and that are still running; the
    next command about the run collects what they write."""

    partition: str
    nodes: Count
    gpus: Count
    jobs: list[JobRow] = field(default_factory=list)
    later: list[LaterJob] = field(default_factory=list)
    held: SlurmSession | None = None
