"""The plan of a run, as data. `--dry-run` prints it, and `remote` executes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.model.node import Mode, Node


@dataclass(frozen=True, kw_only=True)
class BatchFile:
    """One file for sbatch.

    `name`: the file's name without `.sbatch`.
    `copies`: how often it is submitted.
    `tasks`: the number of tasks if it is submitted as an array.
    `numbers`: the numbers of these tasks.
    `after`: the file whose job must succeed before this one starts.
    `flags`: words before the file's name. They override the file's options.
    `arguments`: words after the file's name.
    `error`: the path for standard error in sbatch's form (err-%j.txt). It is empty if standard error goes to standard output.
    `script`: an uploaded file that is submitted unchanged from the work folder. It is empty if `text` is submitted.
    """

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
        """Return how many jobs or array tasks this file creates."""
        return len(self.numbers) or self.tasks or self.copies


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A submission to Slurm.

    `files`: the files to submit, in this order.
    `partition`: empty for the cluster's default.
    `nodes`, `tasks`, `gpus`: nodes of each job, then tasks and GPUs of each node.
    `show_queue`: whether to record the queue as soon as Slurm says why a job waits.
    `cancel_last`: whether to cancel the last job once the queue has been recorded.
    `session`: the job is an interactive terminal, which srun opens.
    `module`: the module whose lab is the cluster.
    `setup`: the text of setup.sh, which a learner's batch file reads.
    `python`: the command of `bin/python` in the run's folder, as shell text. It is empty if there is no such file.
    `absent_partition`: a partition that a learner's file names and that the cluster lacks; jobs go to `partition` instead.
    `cpu_partition`: the partition of further jobs that a learner's file submits without requesting a GPU. If it is empty,
    these jobs use `partition`.
    `by_launcher`: another launcher starts the ranks inside the job.
    `max_restarts`: how often torchrun on each node may start its processes again.
    `max_s`: the time limit in the learner's own file in seconds; None if there is none.
    `own`: the file is the learner's own and not part of an exercise.
    `asks`: what the job requests, in words.
    """

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
    python: str = ""
    absent_partition: str = ""
    cpu_partition: str = ""
    by_launcher: bool = False
    max_restarts: int = 0
    max_s: float | None = None
    own: bool = False
    asks: str = ""

    @property
    def spread(self) -> bool:
        """Return whether each rank has its own log, because a launcher starts the ranks or the job has several processes.
        Processes of a learner's own batch file share one log for each job."""
        return not self.own and (self.nodes * self.tasks > 1 or self.by_launcher)


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One uploaded file. `name` is its relative POSIX path in the node's work folder; `source` is its path on this computer."""

    name: str
    source: Path


@dataclass(frozen=True, kw_only=True)
class NodeCommand:
    """The command that one node runs: `argv` in the work folder, with `env` added to the node's own environment.

    `ranks`: the global ranks that it starts, in the order of their local ranks.
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
    """One complete run: everything that is needed to start it. The same plan always starts the same commands.

    `timeout_s`: the time limit. Each node enforces it, even if the client is gone.
    `outputs`: glob patterns in the work folder for files to collect in addition to `outputs/`.
    `max_output_bytes`: the limit for one file.
    `output_limit`: the limit in bytes for all files of a node.
    `max_output_files`: the limit for the number of files.
    `log_limit`: the limit in bytes for one log.
    `batch`: the submission to Slurm. The plan then has a single command, which only submits it.
    `own_script`: the name of a learner's own script that replaces the exercise's.
    `max_restarts`: how often torchrun may start all ranks again.
    `spread`: on how many nodes the ranks are if the only command runs on the first node, otherwise 0.
    `handed_on`: environment variables of this computer that are passed on to the ranks. Their values are never written to a
    file.
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
    spread: int = 0

    @property
    def node_count(self) -> int:
        """Return on how many nodes the ranks run."""
        return self.spread or len(self.commands)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the run, in rank order."""
        return tuple(command.node for command in self.commands)

    @property
    def world_size(self) -> int:
        """Return the number of ranks that the launcher starts on all nodes together."""
        return sum(len(command.ranks) for command in self.commands)

    @property
    def rank_count(self) -> int:
        """Return how many ranks take part: more than the launcher starts if an exercise forks `ranks_per_node` ranks."""
        return self.world_size * (1 if self.own_script else find_fork_count(self.parameters))


def find_fork_count(parameters: Mapping[str, object]) -> int:
    """Return how many ranks each process of the launcher forks: the exercise's parameter `ranks_per_node`, or 1."""
    count = parameters.get("ranks_per_node", 1)
    return count if isinstance(count, int) else 1
