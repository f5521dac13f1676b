"""What a run is going to do, as data: `--dry-run` prints it, `remote` carries it out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.model.node import Mode, Node
from gpucourse.model.slurm import Batch


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One file that travels: `name` is its path in the work folder on the node (POSIX, relative), `source` is here."""

    name: str
    source: Path


@dataclass(frozen=True, kw_only=True)
class NodeCommand:
    """What one node starts: `argv` in the work folder, with `env` added to the node's own environment.

    `ranks` are the global ranks that this command brings up, in order of their local rank.
    """

    node: Node
    argv: tuple[str, ...]
    env: dict[str, str]
    ranks: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """One run, complete: the same plan always does the same thing.

    `timeout_s` is the deadline that each node keeps by itself, client or not. `outputs` are glob patterns in the work
    folder that come home besides everything in `outputs/`. `max_output_bytes` is the limit for one file, `log_limit` that for
    one log, in bytes. `batch` is what goes to Slurm: the one command then only submits it. `own_script` is the name of a
    script of the learner's own that runs in the exercise's place.
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
    log_limit: int = 1 << 30
    batch: Batch | None = None
    own_script: str = ""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes taking part, in rank order."""
        return tuple(command.node for command in self.commands)

    @property
    def world_size(self) -> int:
        """How many ranks there are in all."""
        return sum(len(command.ranks) for command in self.commands)
