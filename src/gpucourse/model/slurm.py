"""What an exercise asks Slurm for (in a manifest), what is submitted (in a plan), what became of it (in a record)."""

from __future__ import annotations

from dataclasses import dataclass, field

SLURM = ("slurm", "slurm-pty")
"""The launchers that ask Slurm: a batch job, and a terminal on a node that Slurm gives."""


@dataclass(frozen=True, kw_only=True)
class BatchFile:
    """One file for sbatch. `name` is the file's, without `.sbatch`; it is submitted `copies` times, or once as an array of
    `tasks`. `after` names the file whose job must have ended well before this one starts. `flags` are typed before the file's
    name, where they overrule it, and `arguments` after it. `error` is where the file itself sends standard error, in sbatch's
    words (err-%j.txt); empty where that goes with standard output."""

    name: str
    text: str
    copies: int = 1
    tasks: int = 0
    after: str = ""
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    error: str = ""

    @property
    def rows(self) -> int:
        """How many jobs or tasks of an array come of it."""
        return self.tasks or self.copies


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What is submitted, in this order. `partition` is empty where the cluster's own default is taken; `nodes`, `tasks` (a
    node) and `gpus` (a node) are those of each job. With `show_queue`, the queue is kept as a picture once a job waits with
    its reason; with `cancel_last`, the last job is then cancelled. `session`: it is a terminal, which
    srun opens. `module` is the one whose lab the cluster is."""

    partition: str
    nodes: int
    tasks: int
    gpus: int
    files: tuple[BatchFile, ...]
    show_queue: bool = False
    cancel_last: bool = False
    session: bool = False
    module: str = "2"

    @property
    def spread(self) -> bool:
        """Whether each job is several processes, which srun starts."""
        return self.nodes * self.tasks > 1


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


@dataclass(kw_only=True)
class SlurmSession:
    """What Slurm said of a terminal on a node: the GPUs held for it while it was open, and after it."""

    gpus_held: int = 0
    gpus_after: int | None = None
    held_s: float | None = None


@dataclass(kw_only=True)
class SlurmRun:
    """The part of a run's record that Slurm adds."""

    partition: str
    nodes: int
    gpus: int
    jobs: list[JobRow] = field(default_factory=list)
    held: SlurmSession | None = None
