"""The interface of a launcher, which makes a launch plan from a request and facts about the nodes. Each subclass has its own
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
    """The facts about a node that are looked up before planning. `interface` is the network interface that leads to the other
    nodes."""

    cores: int
    interface: str


@dataclass(frozen=True, kw_only=True)
class LabFacts:
    """The facts about a lab that are looked up before planning.

    `nodes`: the facts about each node, by its name.
    `port`: a free port of the first node.
    """

    nodes: Mapping[str, NodeFacts]
    port: int


@dataclass(frozen=True, kw_only=True)
class ClusterSite:
    """What a cluster's settings add to the jobs of a run.

    `flags`: the options after sbatch and srun, which override the lines of a file.
    `cpu_flags`: these options for a job without a GPU.
    `setup`: shell lines before the command of each job.
    `python`: the command that starts Python, as shell text. If it is empty, jobs use the interpreter of `ClusterFacts`.
    `apptainer`, `pyxis`: the image of the container in which the command runs, or empty strings.
    `cores`: the cores of each process. If it is 0, Slurm's default or the learner's options apply.
    `absent_partition`: a partition that a learner's file names and that the cluster lacks, or an empty string.
    `requests_gpus`: whether `flags` already request the GPUs, so that the file does not have to.
    """

    flags: tuple[str, ...] = ()
    cpu_flags: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    python: str = ""
    apptainer: str = ""
    pyxis: str = ""
    cores: int = 0
    absent_partition: str = ""
    requests_gpus: bool = False


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """The facts about a cluster that are looked up before planning.

    `module`: the module of its lab.
    `partition`: empty for the default partition.
    `nodes`: the number of nodes of each job.
    `threads`: how many threads a process may use. If it is None, the job finds this number itself.
    `gpus`: the number of GPUs that a job gets on each node.
    `python`: the interpreter on the nodes. If it is empty, they use the head's.
    `site`: what the learner's settings for a cluster add to each job.
    """

    module: str
    partition: str
    nodes: int
    threads: int | None
    gpus: int
    python: str = ""
    site: ClusterSite = field(default_factory=ClusterSite)


@dataclass(frozen=True, kw_only=True)
class WrittenBatch:
    """A batch file that the learner wrote as a part of an exercise.

    `name`: the file's name without its ending.
    `tasks`: the number of tasks of its array, or 0 if it has no array.
    """

    name: str
    text: str
    tasks: int = 0


@dataclass(frozen=True, kw_only=True)
class TorchrunOptions:
    """torchrun's own options as they were typed, one word each, such as `--role=trainer`.

    `max_restarts`: the typed number, or None. It is stored separately, because the nodes need it.
    """

    words: tuple[str, ...] = ()
    max_restarts: int | None = None


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """The learner's request, with a value for each parameter.

    `arguments`: the script's arguments, in order.
    `environment`: variables that override the launcher's own.
    `handed_on`: variables that receive their values when the run starts.
    `typed`: the names of the parameters that were typed, and `nodes` and `timeout` if these options were typed.
    `written_batch`: the file that is submitted instead of the course's own file.
    `array_task`: the number of the run in the job array of a parameter sweep, or None if the run is a job of its own.
    """

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
    array_task: int | None = None


F = TypeVar("F", LabFacts, ClusterFacts)


class Launcher(LauncherTraits, ABC, Generic[F]):
    """A way to start the processes of a run.

    To add a launcher, write a subclass in its own file, and add a line to `LAUNCHERS` (`model/launchers.py`).
    """

    name: ClassVar[str]

    @abstractmethod
    def plan(self, request: LaunchRequest, nodes: Sequence[Node], facts: F) -> LaunchPlan:
        """Return the plan for these nodes; the first one is the head. No node is queried, so that `--dry-run` can print the
        plan."""

    def object_to(self, *, torchrun: str, handed_on: Sequence[str], profile: bool) -> UsageError | None:
        """Return the error if this launcher cannot do what was typed, or None if it can.

        `torchrun`: torchrun's own options.
        `handed_on`: variables whose values no file may contain.
        `profile`: whether a profiler was requested.
        """
        del handed_on, profile
        if not torchrun:
            return None
        return UsageError(
            f"--torchrun is for torchrun, but the launcher of this run is {self.name}",
            hint="gpucourse run --launcher torchrun ...",
        )


def find_launcher(name: str) -> Launcher[Any]:
    """Return the launcher of that name, which is one of `LAUNCHERS`."""
    return cast("Launcher[Any]", find_traits(name))
