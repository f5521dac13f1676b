"""The facts about a Slurm cluster that `deploy` finds: partitions, accounts, limits, and what a job sees on a compute node."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from gpucourse.model.slurm import MAX_COUNT, Count
from gpucourse.outside.names import is_shown

_PARTITION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")
MAX_PARTITIONS = 500
MAX_TYPES = 100
MAX_HINT = 100_000  # a hint repeats what the learner typed


@dataclass(kw_only=True)
class PartitionFacts:
    """One partition, with its nodes and limits as sinfo and scontrol report them.

    `max_s`: its time limit in seconds; None if there is none.
    `usable`: how many of its nodes accept jobs, now or after their current jobs. The other counts include nodes that are down.
    `gpus`, `cores`: how many its largest node has.
    `gpu_nodes`: the nodes with a GPU.
    `gpu_types`: the number of nodes with each type that Slurm knows, such as a100; empty if GPUs have no type.
    `accounts`, `denied_accounts`, `qos`: who may use it. An empty list of accounts or QoS means that all may use it.
    `max_nodes`: the most nodes that one job may have; None if there is no limit.
    """

    name: str
    default: bool = False
    open: bool = True
    max_s: float | None = None
    nodes: Count = 0
    usable: Count = 0
    gpus: Count = 0
    gpu_nodes: Count = 0
    cores: Count = 0
    gpu_types: dict[str, Count] = field(default_factory=dict)
    accounts: tuple[str, ...] = ()
    denied_accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    max_nodes: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers, the texts, and the name, which becomes part of a command. Raises ValueError."""
        if not _PARTITION.fullmatch(self.name):
            raise ValueError("the name of a partition is invalid")
        counts = (self.nodes, self.usable, self.gpus, self.gpu_nodes, self.cores, *self.gpu_types.values())
        if max(counts) >= MAX_COUNT or len(self.gpu_types) > MAX_TYPES:
            raise ValueError("a partition has more nodes, GPUs or types of GPU than any cluster")
        _check_words((*self.gpu_types, *self.accounts, *self.denied_accounts, *self.qos))

    def count_nodes(self, *, gpus: int, gpu: str = "") -> int:
        """Return how many nodes a job can have: with a GPU of the type `gpu`, or without one if `gpus` is 0."""
        if gpus == 0:
            return self.nodes
        return self.gpu_types.get(gpu, 0) if gpu else self.gpu_nodes

    def admits(self, accounts: Iterable[str]) -> bool:
        """Return whether one of these accounts may use the partition. If there are no accounts, every partition may be used."""
        names = set(accounts)
        if not names:
            return True
        return bool(names - set(self.denied_accounts)) and (not self.accounts or bool(names & set(self.accounts)))


ProbeState = Literal["none", "pending", "passed", "failed"]


@dataclass(kw_only=True)
class ProbeFacts:
    """The state and the result of the probe: a short job that looks at a compute node.

    `job`: its number in the queue.
    `problem`: what is wrong, in one sentence; `hint`: what to type.
    `expected`: when Slurm expects it to start (ISO 8601, the cluster's time), or an empty string.
    `nodes`: the host names of the nodes that it ran on.
    `gpu`: the name of the first node's first GPU.
    `lacks_software`: whether a Python or torch is missing, which the learner can fix.
    """

    state: ProbeState = "none"
    job: str = ""
    reason: str = ""
    expected: str = ""
    problem: str = ""
    hint: str = ""
    nodes: tuple[str, ...] = ()
    python: str = ""
    version: str = ""
    torch: str = ""
    cuda: str = ""
    gpu: str = ""
    lacks_software: bool = False

    def __post_init__(self) -> None:
        """Check the number of the job, which becomes part of a command, and that every text can be shown. Raises ValueError."""
        if self.job and not (self.job.isascii() and self.job.isdigit()):
            raise ValueError("the number of the probe's job is invalid")
        _check_words((self.job, self.reason, self.expected, self.problem, *self.nodes))
        _check_words((self.hint,), max_length=MAX_HINT)
        _check_words((self.python, self.version, self.torch, self.cuda, self.gpu))


@dataclass(kw_only=True)
class SlurmFacts:
    """The facts about a cluster and about the learner's account on it.

    `version`: Slurm's version.
    `enforced`: what accounting enforces (AccountingStorageEnforce), such as associations or limits.
    `accounts`: the accounts of the learner, the default one first.
    `has_sacct`: whether sacct answers.
    `min_job_age_s`: how long Slurm remembers a job that has ended.
    `modules`: the environment modules whose name contains torch, conda or python.
    `folder`: the absolute path of the folder for the course's files, which the setting `folder` names.
    """

    cluster: str = ""
    version: str = ""
    partitions: list[PartitionFacts] = field(default_factory=list)
    enforced: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    has_sacct: bool = False
    min_job_age_s: int | None = None
    modules: tuple[str, ...] = ()
    folder: str = ""

    def __post_init__(self) -> None:
        """Check sizes and texts. Raises ValueError."""
        if len(self.partitions) > MAX_PARTITIONS:
            raise ValueError(f"more than {MAX_PARTITIONS} partitions")
        _check_words((self.cluster, self.version, *self.enforced, *self.accounts, *self.qos, *self.modules, self.folder))

    def find_partition(self, name: str) -> PartitionFacts | None:
        """Return the partition of that name, or None."""
        return next((partition for partition in self.partitions if partition.name == name), None)

    def choose_partition(
        self, *, gpus: int, nodes: int = 1, gpu: str = "", time_s: float = 0.0, account: str = ""
    ) -> PartitionFacts | None:
        """Return the partition for a job, or None if none fits.

        A job with GPUs goes to a partition with enough of them, of the type `gpu` if one is named. A job without a GPU prefers
        a partition without GPUs. Among the partitions that fit, the order of preference is: enough nodes that are up, a long
        enough time limit, the cluster's default, the longest limit.
        """
        accounts = (account,) if account else self.accounts

        def fits(partition: PartitionFacts) -> bool:
            enough, count = partition.gpus >= gpus, partition.count_nodes(gpus=gpus, gpu=gpu)
            few = partition.max_nodes is None or partition.max_nodes >= nodes
            return partition.open and partition.admits(accounts) and enough and few and count >= nodes

        def rank(partition: PartitionFacts) -> tuple[bool, bool, bool, bool, bool, float]:
            limit = float("inf") if partition.max_s is None else partition.max_s
            is_open = bool(accounts) or not partition.accounts  # without accounting it is unknown who may use a closed one
            return (
                is_open,
                partition.usable >= nodes,
                limit >= time_s,
                gpus > 0 or partition.gpus == 0,
                partition.default,
                limit,
            )

        return max(filter(fits, self.partitions), key=rank, default=None)


def _check_words(words: Iterable[str], max_length: int = 1000) -> None:
    if not all(is_shown(word) and len(word) <= max_length for word in words):
        raise ValueError("a text is too long or contains control characters")
