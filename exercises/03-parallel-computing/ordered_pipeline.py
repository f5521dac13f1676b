"""The model of 3.6 in parts, and a pipeline whose stages work in the order of my_schedule.py."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import bench
import bubble
import ranks
import stages
import torch
import torch.distributed as dist
from bubble import BACKWARD, FORWARD, Piece
from torch import nn
from torch.nn.functional import cross_entropy

if TYPE_CHECKING:
    from ranks import World

SEED, CLASSES, LEARNING_RATE = 0, 10, 0.05
Order = list[tuple[str, int]]


class Layer(nn.Module):
    """A layer of the split model. All layers do the same work, so equal shares of layers are equal work."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def build(share: range, layers: int, width: int) -> nn.Sequential:
    """Return this share of a model of `layers` layers. Every call makes the same model. The share with the last layer also has
    the output layer."""
    torch.manual_seed(SEED)
    model = nn.Sequential(*(Layer(width) for _ in range(layers)), nn.Linear(width, CLASSES))
    return model[share.start : share.stop + (share.stop == layers)]


def make_batch(size: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the inputs and labels of a batch, which are always the same. A teacher network sets the labels."""
    source = torch.Generator().manual_seed(SEED)
    x = torch.randn(size, width, generator=source)
    return x, (x @ torch.randn(width, CLASSES, generator=source)).argmax(dim=1)


def find_orders(size: int, micro_batches: int) -> list[Order]:
    """Return the order of my_schedule.py for each of `size` stages. Raises ValueError if a pipeline cannot work in it."""
    order_of_stage = importlib.import_module("my_schedule").order_of_stage
    orders = [[(kind, number) for kind, number in order_of_stage(stage, size, micro_batches)] for stage in range(size)]
    for stage, order in enumerate(orders):
        at = {piece: place for place, piece in enumerate(order)}
        if len(order) != len(at) or at.keys() != {(kind, i) for kind in (FORWARD, BACKWARD) for i in range(micro_batches)}:
            raise ValueError(f"stage {stage} of {size} needs each of {micro_batches} micro-batches once in each direction")
        if misordered := [i for i in range(micro_batches) if at[BACKWARD, i] < at[FORWARD, i]]:
            raise ValueError(f"stage {stage} of {size} runs micro-batch {misordered[0]} backward before it ran forward")
    bubble.replay(_time(orders))  # raises ValueError if the stages wait for each other for ever
    return orders


def train(
    world: World, sweep: Sequence[int], micro_batches: int, shares: Sequence[Sequence[int]], shape: Sequence[int], steps: int
) -> dict[str, object]:
    """Measure my_schedule.py with each number of micro-batches in `sweep`, then train with `micro_batches`.

    Return the results of both.

    `shares` has, for each rank, its first layer and the layer after its last one. `shape` has the samples of a batch, the
    width and the layers.
    """
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    batch_size, width, layers = shape
    share = range(*shares[world.rank])
    x, y = (tensor.to(world.device) for tensor in make_batch(batch_size, width))
    whole = build(range(layers), layers, width).to(world.device)
    cross_entropy(whole(x), y).backward()
    gradient = ranks.flat(weight.grad for weight in whole[share.start : share.stop + (share.stop == layers)].parameters())
    pipeline = _Pipeline(world, build(share, layers, width).to(world.device), x, y)
    rows = [_measure(pipeline, count, gradient, steps) for count in sweep]
    orders = find_orders(world.size, micro_batches)
    optimizer, losses = torch.optim.SGD(pipeline.part.parameters(), lr=LEARNING_RATE), []
    for _ in range(steps):
        pipeline.part.zero_grad(set_to_none=True)
        losses.append(pipeline.step(orders))
        optimizer.step()
    return {"rows": rows, "losses": losses}


def _measure(pipeline: _Pipeline, micro_batches: int, gradient: torch.Tensor, steps: int) -> dict[str, object]:
    """Return a row of the result table. It has two differences of the order from 1F1B: in the micro-batches that stages hold,
    and in the bubble if a backward takes twice as long as a forward. Both are computed, not measured."""
    world, size = pipeline.world, pipeline.world.size
    orders = find_orders(size, micro_batches)
    seconds, pieces, error = [], [], 0.0
    for number in range(2 + steps):
        pipeline.part.zero_grad(set_to_none=True)
        world.wait_for_all()
        seconds += bench.time_each(lambda: pipeline.step(orders), world.device, 1)
        pieces.append(pipeline.watch.take())
        if number == 0:
            error = world.error(ranks.flat(weight.grad for weight in pipeline.part.parameters()), gradient)
    row = {"way": "yours", "micro_batches": micro_batches, **bench.spread_ms(world.slowest(seconds[2:]))}
    timed = _time(orders)
    held_counts = [bubble.count_in_flight(order) for order in timed]
    ideal = 100 * bubble.idle_share(timed, bubble.replay(timed))
    return {
        **row, "gradient_error": error, **bubble.summary(world.gather(stages.typical(pieces[2:])), row["median_ms"]),
        "held_too_many": sum(max(0, count - (size - stage)) for stage, count in enumerate(held_counts)),
        "bubble_above_points": max(0.0, ideal - 100 * bubble.predict_bubble(size, micro_batches)),
    }  # fmt: skip


def _time(orders: Sequence[Order]) -> list[list[Piece]]:
    """Return the orders with the usual times: a backward takes twice as long as a forward."""
    return [[Piece(kind, number, 2.0 if kind == BACKWARD else 1.0) for kind, number in order] for order in orders]


class _Pipeline:
    """This rank's stage. It receives, computes and sends in the order that it gets."""

    def __init__(self, world: World, part: nn.Sequential, x: torch.Tensor, y: torch.Tensor) -> None:
        self.world, self.part, self.watch = world, part, stages.Watch(world.device)
        self._x, self._y = x, y
        # A group for each direction: with NCCL, two neighbours that both send first would otherwise wait for each other.
        self._groups = {kind: dist.new_group() for kind in (FORWARD, BACKWARD)}

    def step(self, orders: Sequence[Order]) -> float | None:
        """Run one step. The gradients are then in `part`. Return the loss on the last rank."""
        rank, last, count = self.world.rank, self.world.rank == self.world.size - 1, len(orders[0]) // 2
        arrivals = {
            kind: self._receive(source, kind, orders[source], len(self._x) // count)
            for kind, source in ((FORWARD, rank - 1), (BACKWARD, rank + 1))
            if 0 <= source < self.world.size
        }
        received: dict[tuple[str, int], torch.Tensor] = {}
        inputs, outputs, sends, loss = {}, {}, [], 0.0
        for kind, number in orders[rank]:
            while kind in arrivals and (kind, number) not in received:
                received |= next(arrivals[kind])
            tensor = received.pop((kind, number), None)
            if kind == FORWARD:
                inputs[number] = self._x.chunk(count)[number] if tensor is None else tensor.requires_grad_()
                with self.watch.piece(kind, number):
                    outputs[number] = self.part(inputs[number])
                if last:
                    outputs[number] = cross_entropy(outputs[number], self._y.chunk(count)[number]) / count
                    loss += outputs[number].item()
                else:
                    sends.append(self._send(outputs[number].detach(), rank + 1, kind))
            else:
                with self.watch.piece(kind, number):
                    outputs.pop(number).backward(tensor)
                gradient = inputs.pop(number).grad
                if rank > 0:
                    sends.append(self._send(gradient, rank - 1, kind))
        for work, _ in sends:
            work.wait()
        return loss if last else None

    def _receive(self, source: int, kind: str, order: Order, samples: int):
        """Yield the tensors that `source` sends in this direction, in the order of its pieces."""
        for number in [number for piece_kind, number in order if piece_kind == kind]:
            tensor = torch.empty(samples, self._x.shape[1], device=self._x.device)
            dist.recv(tensor, source, group=self._groups[kind])
            yield {(kind, number): tensor}

    def _send(self, tensor: torch.Tensor, target: int, kind: str) -> tuple[dist.Work, torch.Tensor]:
        """Start to send. The tensor must live until the work has ended, so it is returned, too."""
        return dist.isend(tensor, target, group=self._groups[kind]), tensor
