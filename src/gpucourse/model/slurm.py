"""The launchers that ask Slurm, and what became of what was submitted: a part of the record of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

SLURM = ("slurm", "slurm-pty")
"""The launchers that ask Slurm: a batch job, and a terminal on a node that Slurm gives."""


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """One job, or one task of an array: `state` and `reason` are Slurm's own words; `code` is the shell's, None where nobody
    knows it. Times are Slurm's, of the cluster's own clock. `asked`: the exercise itself cancelled it."""

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
    restarts: int = 0
    asked: bool = False


@dataclass(frozen=True, kw_only=True)
class LaterJob:
    """A job that a run's own job submitted, and that had not ended when Slurm was last asked: its number, name and state."""

    job: str
    name: str = ""
    state: str = ""


@dataclass(kw_only=True)
class SlurmSession:
    """What Slurm said of a terminal on a node: the GPUs held for it while it was open, and after it."""

    gpus_held: int = 0
    gpus_after: int | None = None
    held_s: float | None = None


@dataclass(kw_only=True)
class SlurmRun:
    """The part of a run's record that Slurm adds. `later`: jobs that its own jobs submitted and that still run; what they write
    is collected by the next command about the run."""

    partition: str
    nodes: int
    gpus: int
    jobs: list[JobRow] = field(default_factory=list)
    later: list[LaterJob] = field(default_factory=list)
    held: SlurmSession | None = None
