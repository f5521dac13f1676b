"""The interface of a launcher: it makes a launch plan from a request and facts about the nodes. Each subclass has its own
file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from gpucourse.errors import UsageError
from gpucourse.model.launchers import LauncherTraits, find_traits
from gpucourse.model.plan import LaunchPlan, Upload

if TYPE_CHECKING:  # it imports pydantic, which `run --help` does not need
    from gpucourse.model.manifest import Exercise
    from gpucourse.model.node import Node


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """The facts that were looked up on a node before planning: processor cores, and the interface that leads to the other
    nodes."""

    cores: int
    interface: str


@dataclass(frozen=True, kw_only=True)
class LabFacts:
    """The facts that were looked up in a lab before planning: the facts about each node, by its name, and a free port of the
    first node."""

    nodes: Mapping[str, NodeFacts]
    port: int


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """The facts that were looked up in a cluster before planning. `module`: the module of its lab. `partition`: empty for the
    default. `nodes`: the nodes of each job. `threads`: how many threads a process may use (None: the job itself finds out).
    `gpus`: the GPUs of each node for a job (0 if there are none). `python`: the interpreter on the nodes (empty: the
    head's)."""

    module: str
    partition: str
    nodes: int
    threads: int | None
    gpus: int
    python: str = ""


@dataclass(frozen=True, kw_only=True)
class WrittenBatch:
    """A batch file that the learner wrote as a part of an exercise. `name` is the file's name without its ending; `tasks` is
    the number of tasks of its array, 0 if it has no array."""

    name: str
    text: str
    tasks: int = 0


@dataclass(frozen=True, kw_only=True)
class TorchrunOptions:
    """torchrun's own options as they were typed, one word each (`--role=trainer`). `max_restarts` is separate, because the
    nodes need it; it is None if it was not typed."""

    words: tuple[str, ...] = ()
    max_restarts: int | None = None


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """The learner's request, resolved: the parameters with their values, and the script's arguments in order. `typed` has the
    names of the parameters that were typed, and of the options nodes and timeout if they were. `written_batch` is submitted in
    place of the course's own file. `environment` overrides what would be set otherwise; the variables in `handed_on` receive
    their values when the run starts."""

    exercise: Exercise
    launcher: str
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    script: str
    parameters: dict[str, object]
    arguments: tuple[str, ...]
    uploads: tuple[Upload, ...]
    timeout_s: float
    environment: dict[str, str] = field(default_factory=dict)
    handed_on: tuple[str, ...] = ()
    torchrun_options: TorchrunOptions = field(default_factory=TorchrunOptions)
    nccl: dict[str, str] = field(default_factory=dict)
    processes: int | None = None
    typed: frozenset[str] = frozenset()
    written_batch: WrittenBatch | None = None


F = TypeVar("F", LabFacts, ClusterFacts)


class Launcher(LauncherTraits, ABC, Generic[F]):
    """A way to start the processes of a run. To add a launcher, write a subclass in its own file, and add a line to `LAUNCHERS`
    (`model/launchers.py`)."""

    name: ClassVar[str]

    @abstractmethod
    def plan(self, request: LaunchRequest, nodes: Sequence[Node], facts: F) -> LaunchPlan:
        """Return the plan for these nodes, the first of which is the head. No node is asked, so that `--dry-run` can print the
        plan."""

    def object_to(self, *, torchrun: str, handed_on: Sequence[str], profile: bool) -> UsageError | None:
        """Return why this launcher cannot do what was typed; None if it can. `torchrun`: torchrun's own options. `handed_on`:
        the variables whose values no file may contain. `profile`: whether a profiler was requested."""
        del handed_on, profile
        if not torchrun:
            return None
        return UsageError(
            f"--torchrun is for torchrun, and the launcher of this run is {self.name}",
            hint="gpucourse run --launcher torchrun ...",
        )


def find_launcher(name: str) -> Launcher[Any]:
    """Return the launcher of that name, which is one of `LAUNCHERS`."""
    return cast("Launcher[Any]", find_traits(name))
