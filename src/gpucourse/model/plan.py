"""The plan of a run, as data: `--dry-run` prints it, and `remote` executes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.model.node import Mode, Node


@dataclass(frozen=True, kw_only=True)
class BatchFile:
    """One file for sbatch. `name` is the file's name without `.sbatch`. It is submitted `copies` times, or once as an array of
    `tasks`, or of the tasks with these `numbers`. `after` names the file whose job must succeed before this one starts. `flags`
    are typed before the file's name, where they override the file's options, and `arguments` after it. `error` is the file's
    own path for standard error, in sbatch's form (err-%j.txt); empty if standard error goes with standard output. `script` is
    the name of an uploaded file that is submitted unchanged from the work folder; empty if `text` is submitted."""

    name: str
    text: str
    copies: int = 1
    tasks: int = 0
    numbers: tuple[int, ...] = ()
    after: str = ""
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    error: str = ""
    script: str = ""

    @property
    def file_name(self) -> str:
        """Return the file name for sbatch."""
        return self.script or f"{self.name}.sbatch"

    @property
    def rows(self) -> int:
        """Return how many jobs or array tasks the file makes."""
        return len(self.numbers) or self.tasks or self.copies


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A submission to Slurm: `files`, in this order. `partition` is empty for the cluster's default; `nodes`, `tasks` (per
    node) and `gpus` (per node) apply to each job. With `show_queue`, a picture of the queue is kept once a job waits and shows
    its reason; with `cancel_last`, the last job is then cancelled. `session`: the job is a terminal, which srun opens. `module`
    is the module whose lab is the cluster. `setup` is the text of setup.sh, which a learner's batch file reads. `max_restarts`:
    srun starts one torchrun per node, which may start its processes again that often. `own`: the file is the learner's own and
    not part of an exercise; `asks` describes its request in words."""

    partition: str
    nodes: int
    tasks: int
    gpus: int
    files: tuple[BatchFile, ...]
    show_queue: bool = False
    cancel_last: bool = False
    session: bool = False
    module: str = "2"
    setup: str = ""
    max_restarts: int = 0
    own: bool = False
    asks: str = ""

    @property
    def spread(self) -> bool:
        """Return whether each rank of a job has a separate log: the job has several processes, or torchrun starts them. The
        processes of a learner's own file write into one log for each job."""
        return not self.own and (self.nodes * self.tasks > 1 or self.max_restarts > 0)


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One uploaded file: `name` is its path in the work folder on the node (POSIX, relative), `source` is its path here."""

    name: str
    source: Path


@dataclass(frozen=True, kw_only=True)
class NodeCommand:
    """The command that one node starts: `argv` in the work folder, with `env` added to the node's own environment.

    `ranks` are the global ranks that this command starts, in order of their local rank.
    """

    node: Node
    argv: tuple[str, ...]
    env: dict[str, str]
    ranks: tuple[int, ...]

    @property
    def node_name(self) -> str:
        """Return the name of the node."""
        return self.node.name


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """One complete run: the same plan always does the same thing.

    `timeout_s` is the time limit that each node enforces by itself, with or without a client. `outputs` are glob patterns in
    the work folder that are collected besides everything in `outputs/`. `max_output_bytes` is the limit for one file,
    `output_limit` for all files of a node, `max_output_files` for their number, and `log_limit` for one log; sizes are in
    bytes. `batch` is the submission to Slurm: the plan's single command then only submits it. `own_script` is the name of a
    learner's own script that runs in place of the exercise. `max_restarts`: how often torchrun may start all ranks again.
    `handed_on`: the variables of this computer's environment that ranks receive in addition; no file contains their values.
    """

    run_id: str
    exercise: str
    launcher: str
    mode: Mode
    script: str
    parameters: dict[str, object]
    commands: tuple[NodeCommand, ...]
    uploads: tuple[Upload, ...]
    master_address: str
    master_port: int
    timeout_s: float
    collective_timeout_s: float
    outputs: tuple[str, ...] = field(default_factory=tuple)
    max_output_bytes: int = 1 << 30
    output_limit: int = 10 << 30
    max_output_files: int = 20_000
    log_limit: int = 1 << 30
    batch: Batch | None = None
    own_script: str = ""
    max_restarts: int = 0
    handed_on: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the run, in rank order."""
        return tuple(command.node for command in self.commands)

    @property
    def world_size(self) -> int:
        """Return how many ranks there are in all."""
        return sum(len(command.ranks) for command in self.commands)
