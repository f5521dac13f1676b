"""Watch a training run of 5.9: which samples it takes, what it keeps, and which of the eight faults it still has.

It does not read the source. It sees samples as they enter the model, graphs by the objects that autograd still keeps at the
next step, and everything else by the operations that reach torch. The lines that call them show which are in a loop.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import pipeline
import torch
from dispatch import Operations
from torch import nn

OFTEN, EVERY_STEP = pipeline.BATCH / 2, 0.2  # least counts per step of a loop over the samples, and of each step
HOW = {
    1: "rows that Python loops over, per sample and call",
    2: "float64 results, per step",
    3: "lines that read one value, per step",
    4: "graphs that live longer than their step, per step",
    5: "values read in a loop over samples, per step",
    6: "copies of a parameter, per step",
    7: "tensors that backward has used and kept, per step",
    8: "operations in a loop over samples, per step",
}


class Row(list):
    """A sample's numbers, with a count of Python's loops over them."""

    passes = 0

    def __iter__(self) -> Any:
        Row.passes += 1
        return super().__iter__()


class _SavedTensor:
    """A tensor that autograd has saved for backward."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor.data  # without its graph, which would hold itself


class _Mark:
    """A mark on a node of a step's graph, which is deleted with the node."""

    def __call__(self, *_: object) -> None:
        """Count a pass of backward, which calls this."""


@dataclass
class Observation:
    """Observations of a training run. `counts` has the count of each fault, by number (see HOW)."""

    losses: torch.Tensor
    accuracies: torch.Tensor
    weights: torch.Tensor
    counts: dict[int, float]
    steps: int = 0
    samples_missing: int = 0
    samples_repeated: int = 0
    inputs_off: float = 0.0
    half_percent: float = 0.0
    values_read_per_step: float = 0.0
    operations_per_step: float = 0.0
    moves_per_step: float = 0.0
    blocking_moves_per_step: float = 0.0

    def has(self, fault: int) -> bool:
        """Return whether that fault is still there."""
        return self.counts[fault] > (1.5 if fault == 1 else EVERY_STEP)


def convert_outcome(outcome: Any, device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the losses, accuracies and weights that a training run returned, in float64 on the CPU.

    Raises TypeError, ValueError.
    """
    if not isinstance(outcome, tuple) or len(outcome) != 3:
        raise TypeError("it has to return three things: losses, accuracies and the model")
    losses, accuracies, model = outcome
    if not isinstance(model, nn.Module):
        raise TypeError(f"the third thing that it returns is {type(model).__name__}, not the model")
    weights = torch.cat([item.detach().flatten().double().to(device) for item in model.parameters()])
    return _convert_to_tensor(losses), _convert_to_tensor(accuracies), weights


def _convert_to_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, (list, tuple)):
        value = torch.stack([torch.as_tensor(item).detach().double().cpu().reshape(()) for item in value])
    return value.detach().double().cpu().flatten()


class _Door:
    """Watch the input of the model: which samples come in, and which graphs of the previous step still exist."""

    def __init__(self, operations: Operations) -> None:
        self.operations, self.batches = operations, []
        self.saved: weakref.WeakSet[_SavedTensor] = weakref.WeakSet()
        self.marks: weakref.WeakSet[_Mark] = weakref.WeakSet()
        self.kept, self.graphs, self.moves = [], [], []

    def show(self, model: nn.Module) -> None:
        """Register the hooks that watch the forward passes of `model`."""
        model.register_forward_pre_hook(self.enter)
        model.register_forward_hook(self.leave)

    def enter(self, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        """Record the samples when a forward pass begins."""
        if not torch.is_grad_enabled():
            return
        self.operations.model = model
        self.kept.append(len(self.saved))
        self.graphs.append(len(self.marks))
        self.moves.append(len(self.operations.moves))
        self.batches.append(inputs[0].detach())

    def leave(self, _model: nn.Module, _inputs: object, out: torch.Tensor) -> None:
        """Mark the graph when a forward pass has created it."""
        if out.grad_fn is not None:
            mark = _Mark()
            self.marks.add(mark)
            out.grad_fn.register_prehook(mark)

    def pack(self, tensor: torch.Tensor) -> _SavedTensor:
        """Return the object that autograd saves for a tensor."""
        saved = _SavedTensor(tensor)
        self.saved.add(saved)
        return saved


def watch(train: pipeline.Train, samples: int, seed: int, epochs: int, device: torch.device) -> Observation:
    """Run `train` on new data, and return what was observed. Raises the errors of `train` and `convert_outcome`."""
    rows, labels = pipeline.make_data(samples, seed)
    operations = Operations(train.__code__.co_filename)
    door, counted_rows = _Door(operations), [Row(row) for row in rows]
    Row.passes = 0
    pipeline.watchers.append(door.show)
    try:
        with torch.autograd.graph.saved_tensors_hooks(door.pack, lambda saved: saved.tensor), operations:
            outcome = train(counted_rows, labels, epochs, device)
    finally:
        pipeline.watchers.remove(door.show)
    losses, accuracies, weights = convert_outcome(outcome)
    steps = max(1, len(door.batches))
    counts = _count(operations, door, steps, Row.passes / samples)
    missing, repeated, inputs_off = _compare_samples(rows, door.batches, epochs)
    later_moves = operations.moves[door.moves[1] :] if len(door.moves) > 1 else []
    return Observation(
        losses=losses,
        accuracies=accuracies,
        weights=weights,
        counts=counts,
        steps=len(door.batches),
        samples_missing=missing,
        samples_repeated=repeated,
        inputs_off=inputs_off,
        half_percent=100 * operations.half_flop / operations.flop if operations.flop else 0.0,
        values_read_per_step=operations.values_read / steps,
        operations_per_step=operations.operations / steps,
        moves_per_step=len(later_moves) / steps,
        blocking_moves_per_step=sum(not (move.non_blocking and move.pinned) for move in later_moves) / steps,
    )


def _count(operations: Operations, door: _Door, steps: int, passes: float) -> dict[int, float]:
    reads, builds = operations.lines_read, operations.lines_built
    looped = {line: count for line, count in reads.items() if count / steps >= OFTEN}
    single = {line: count for line, count in reads.items() if EVERY_STEP < count / steps < OFTEN}
    loops = {
        line: count
        for line, count in operations.lines.items()
        if count / steps >= OFTEN and line not in looped and builds[line] / steps < OFTEN
    }
    grown = (door.graphs[-1] - door.graphs[1]) / (steps - 2) if steps > 2 else 0.0
    return {
        1: passes,
        2: operations.float64_results / steps,
        3: sum(single.values()) / steps,
        4: max(0.0, grown),
        5: sum(looped.values()) / steps,
        6: operations.weight_copies / steps,
        7: float(door.kept[1]) if steps > 1 else 0.0,
        8: sum(loops.values()) / steps,
    }


def _compare_samples(rows: list[list[int]], batches: list[torch.Tensor], epochs: int) -> tuple[int, int, float]:
    """Return how many samples came in fewer than `epochs` times, how many more often, and the error of their numbers.

    Each sample is recognised by its sum along one direction, which differs for each sample.
    """
    if not batches:
        return len(rows), 0, 0.0
    direction = torch.randn(pipeline.FEATURES, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    right_projections = ((torch.tensor(rows, dtype=torch.float64) - pipeline.MEAN) / pipeline.STD) @ direction
    ordered, places = right_projections.sort()
    projections = torch.cat([batch.reshape(-1, pipeline.FEATURES).double().cpu() for batch in batches]) @ direction
    nearest = torch.searchsorted(ordered, projections).clamp(1, len(rows) - 1)
    nearest -= ((projections - ordered[nearest - 1]).abs() < (projections - ordered[nearest]).abs()).long()
    times = torch.bincount(places[nearest], minlength=len(rows))
    off = float((projections - ordered[nearest]).abs().max())
    return int((times < epochs).sum()), int((times > epochs).sum()), off
