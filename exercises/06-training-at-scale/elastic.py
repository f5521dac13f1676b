"""The calls of the worker of an elastic training run in 6.5. fault_tolerance.py provides them on the nodes. Needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

Value = TypeVar("Value")


class DamagedCheckpointError(Exception):
    """Raised by `load` on each rank that cannot read what it needs. Other ranks may have loaded the same checkpoint."""


class PeerLostError(Exception):
    """Raised in a collective call if another rank has died. This life is over: its processes have to end."""


class Worker(Protocol):
    """One rank in one life of a training run.

    `rank` and `size`: this rank's number and the number of ranks in this life, known after `join`.
    `steps`: the number of the last step. The first one is 1.
    `every`: a checkpoint is saved after each step that is a multiple of it.
    `batch`: the number of sequences in the batch of one step, for all ranks together. It is a multiple of `size`.

    The collective calls are `join`, `gather`, `train_step` and `save`. Every rank must make the same ones in the same order.
    In each call, a rank waits until all other ranks have made the same call.
    """

    rank: int
    size: int
    steps: int
    every: int
    batch: int

    def join(self) -> None:
        """Wait until all ranks of this life are here. Call it before everything else."""

    def gather(self, value: Value) -> list[Value]:
        """Return the values of all ranks, in the order of the ranks."""

    def list_steps(self) -> list[int]:
        """Return the steps of the checkpoints whose folders this rank sees, in any order. Other ranks may see different ones.

        The list contains checkpoints that are incomplete or damaged, too.
        """

    def load(self, step: int) -> None:
        """Load this rank's slices of a checkpoint. The rank does not wait for others.

        Raise DamagedCheckpointError if this rank cannot read it. Some weights may be replaced by then.
        """

    def reset(self) -> None:
        """Set weights and optimizer to their state before step 1, in which each life begins. The rank does not wait."""

    def train_step(self, step: int, sequences: Sequence[int]) -> float:
        """Train one step, and return its mean loss. All ranks pass the same step, and the same number of sequences.

        `sequences`: the numbers, from 0 to `batch` - 1, of the sequences of the batch that this rank computes.
        """

    def save(self, step: int) -> None:
        """Save a checkpoint under this step. Each rank writes its slices; the checkpoint is complete when all have done so."""
