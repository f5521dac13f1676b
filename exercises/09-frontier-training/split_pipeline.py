"""A pipeline on real ranks. It computes slots in a given order, with the backward pass in one piece or in two."""

from __future__ import annotations

import functools
import importlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from pieces import BACKWARD, FORWARD, INPUTS, KINDS, WEIGHTS, Order, Piece, Slot, count_held, simulate
from schedules import order_zero_bubble_v
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from ranks import World

SEED, ROWS = 0, 64
"""Rows of one micro-batch."""
Orders = Sequence[Order]


@dataclass(frozen=True)
class Shape:
    """The sizes of a training step: layers and width of the model, and micro-batches of `ROWS` rows."""

    layers: int
    width: int
    micro_batches: int

    def draw_weights(self) -> list[torch.Tensor]:
        """Return the weights of all layers, the same on every rank."""
        source = torch.Generator().manual_seed(SEED)
        scale = self.width**-0.5
        return [torch.randn(self.width, self.width, generator=source, dtype=torch.float64) * scale for _ in range(self.layers)]

    def draw_batch(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Return the inputs and targets of each micro-batch, the same on every rank."""
        source = torch.Generator().manual_seed(SEED + 1)
        both = torch.randn(2, self.micro_batches, ROWS, self.width, generator=source, dtype=torch.float64)
        return list(both[0]), list(both[1])

    def compute_loss(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return this micro-batch's share of the mean squared error of the batch."""
        return (output - target).pow(2).sum() / (self.micro_batches * ROWS * self.width)


class WholeBackward:
    """The layers of one stage with torch's own backward pass.

    If it has to compute in two pieces, it goes through the layers a second time for the weights. The result is right, and costs
    products that a split layer does not need.
    """

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        self.weights = [weight.clone().requires_grad_() for weight in weights]

    def forward(self, x: torch.Tensor, store: list[Any]) -> torch.Tensor:
        """Return the output of the stage's layers. `store` belongs to this micro-batch."""
        for weight in self.weights:
            x = x + torch.tanh(self.multiply(x, weight, store))
        return x

    def multiply(self, x: torch.Tensor, weight: torch.Tensor, store: list[Any]) -> torch.Tensor:  # noqa: ARG002
        """Return the product of a layer."""
        return torch.nn.functional.linear(x, weight)

    def compute_inputs(self, x: torch.Tensor, output: torch.Tensor, gradient: torch.Tensor | None, store: list[Any]) -> None:
        """Put the gradient of `x` into x.grad, and leave the gradients of the weights as they are."""
        store.append((output, gradient))
        (x.grad,) = torch.autograd.grad(output, x, gradient, retain_graph=True)

    def compute_weights(self, store: list[Any]) -> None:
        """Add this micro-batch's gradients of the weights."""
        output, gradient = store.pop()
        for weight, added in zip(self.weights, torch.autograd.grad(output, self.weights, gradient), strict=True):
            weight.grad = added if weight.grad is None else weight.grad + added


class YourSplit(WholeBackward):
    """The layers of one stage with the learner's SplitLinear."""

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        super().__init__(weights)
        self.part = importlib.import_module("my_split")

    def multiply(self, x: torch.Tensor, weight: torch.Tensor, store: list[Any]) -> torch.Tensor:
        """Return the product of a layer."""
        return self.part.SplitLinear.apply(x, weight, store)

    def compute_inputs(self, _x: torch.Tensor, output: torch.Tensor, gradient: torch.Tensor | None, _store: list[Any]) -> None:
        """Run the backward pass, in which SplitLinear stores the inputs of the weight gradients."""
        output.backward(gradient)

    def compute_weights(self, store: list[Any]) -> None:
        """Let the learner's part add the gradients of the weights."""
        self.part.compute_weights(store)


@dataclass
class Step:
    """Hold what one rank recorded in a step: each slot with its seconds of processor time, and the loss on the last stage.

    `early` counts weights that had a gradient after the first `inputs`. `held` is the largest number of micro-batches whose
    weight gradients were not done.
    """

    seconds: list[tuple[Slot, float]] = field(default_factory=list)
    loss: float = 0.0
    early: int = 0
    held: int = 0


class Pipeline:
    """This rank's stages of a pipeline, which work in the order of `orders`."""

    def __init__(self, world: World, shape: Shape, orders: Orders, stages: int, kind: type[WholeBackward]) -> None:
        self._world, self._shape, self._orders, self._last = world, shape, orders, stages - 1
        self._x, self._y = shape.draw_batch()
        per_stage, weights = shape.layers // stages, shape.draw_weights()
        self._ranks = {(piece.stage, piece.micro_batch): rank for rank, order in enumerate(orders) for (piece,) in order}
        own_stages = sorted({piece.stage for (piece,) in orders[world.rank]})
        self._places = {stage: range(stage * per_stage, (stage + 1) * per_stage) for stage in own_stages}
        self._open: dict[tuple[int, int], Any] = {}
        self._passed: dict[tuple[bool, int, int], torch.Tensor] = {}
        self._stages = {stage: kind([weights[place] for place in places]) for stage, places in self._places.items()}

    @property
    def layers(self) -> list[int]:
        """Return the numbers of this rank's layers."""
        return [place for places in self._places.values() for place in places]

    def list_gradients(self) -> dict[int, torch.Tensor]:
        """Return the gradient of each layer of this rank after a step."""
        both = [zip(self._places[stage], layers.weights, strict=True) for stage, layers in self._stages.items()]
        return {place: weight.grad for pairs in both for place, weight in pairs if weight.grad is not None}

    def run_step(self) -> Step:
        """Remove all gradients, compute one step, and return what was recorded."""
        step, works = Step(), []
        for layers in self._stages.values():
            for weight in layers.weights:
                weight.grad = None
        for slot in self._orders[self._world.rank]:
            (piece,) = slot
            received = self._receive(piece)
            start = time.thread_time()
            sent = self._compute(piece, received, step)
            step.seconds.append((slot, time.thread_time() - start))
            step.held = max(step.held, len(self._open))
            if sent is not None:
                works += self._send(*sent)
        for work, _ in works:
            work.wait()
        return step

    def _compute(self, piece: Piece, received: torch.Tensor | None, step: Step) -> tuple[torch.Tensor, Piece] | None:
        """Compute a piece. Return what another stage needs from it, with the piece that receives it."""
        kind, stage, number = piece
        layers, key = self._stages[stage], (stage, number)
        if kind == FORWARD:
            x = (self._x[number] if received is None else received).clone().requires_grad_()
            store: list[Any] = []
            output = layers.forward(x, store)
            if stage == self._last:
                output = self._shape.compute_loss(output, self._y[number])
                step.loss += output.item()
            self._open[key] = x, output, store
            return (output.detach(), Piece(FORWARD, stage + 1, number)) if stage < self._last else None
        x, output, store = self._open.pop(key)
        if kind == WEIGHTS:
            layers.compute_weights(store)
            return None
        if kind == BACKWARD:
            output.backward(received)
        else:
            layers.compute_inputs(x, output, received, store)
            self._open[key] = None, None, store
            step.early += sum(weight.grad is not None for weight in layers.weights) if number == 0 else 0
        return (x.grad, Piece(INPUTS, stage - 1, number)) if stage > 0 else None

    def _receive(self, piece: Piece) -> torch.Tensor | None:
        """Return what this piece needs from another stage: an activation, a gradient, or None at both ends of the model."""
        kind, stage, number = piece
        source = stage - 1 if kind == FORWARD else stage + 1
        if kind == WEIGHTS or not 0 <= source <= self._last:
            return None
        if self._ranks[source, number] == self._world.rank:
            return self._passed.pop((kind == FORWARD, stage, number))
        tensor = torch.empty_like(self._x[number])
        dist.recv(tensor, self._ranks[source, number], tag=self._tag(kind, stage, number))
        return tensor

    def _send(self, tensor: torch.Tensor, target: Piece) -> list[tuple[Any, torch.Tensor]]:
        """Start to send a tensor, or keep it if the target is on this rank.

        Return the work with its tensor, which must live until then.
        """
        rank = self._ranks[target.stage, target.micro_batch]
        if rank == self._world.rank:
            self._passed[target.kind == FORWARD, target.stage, target.micro_batch] = tensor
            return []
        tensor = tensor.contiguous()
        return [(dist.isend(tensor, rank, tag=self._tag(*target)), tensor)]

    def _tag(self, kind: str, stage: int, number: int) -> int:
        return ((kind == FORWARD) * (self._last + 1) + stage) * self._shape.micro_batches + number


class Products(TorchDispatchMode):
    """Count matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False. With True, each rank would import torch._dynamo, which takes more than a second."""
        return False

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        self.count += function is torch.ops.aten.mm.default
        return function(*arguments, **(keywords or {}))


def measure(
    world: World, shape: Shape, name: str, orders: Orders, stages: int, steps: int, kind: type[WholeBackward] = WholeBackward
) -> dict[str, Any]:
    """Return a row of results for `orders`: differences from one process, memory held, and the bubble from busy times.

    Every rank calls this and gets the same row. The first step warms up, and counts the matrix products. Other programs on the
    computer can only make a piece longer, so the time of a piece is its shortest over all steps. The bubble comes from a replay
    of `orders` on a simulated clock, in which each piece takes the median over its stage's micro-batches.
    """
    pipeline = Pipeline(world, shape, orders, stages, kind)
    with Products() as products:
        pipeline.run_step()
    results, durations = [], []
    for _ in range(steps):
        world.wait_for_all()
        start = time.perf_counter()
        results.append(pipeline.run_step())
        durations.append(time.perf_counter() - start)
    loss, gradients = compute_alone(shape)
    own_gradients = pipeline.list_gradients()
    own_row = {
        "loss": results[-1].loss,
        "off": max((_compare(own_gradients.get(place), gradients[place]) for place in pipeline.layers), default=0.0),
        "held": max(step.held for step in results),
        "early": max(step.early for step in results),
        "products": products.count,
        "seconds": [[slot, min(step.seconds[place][1] for step in results)]
                    for place, (slot, _) in enumerate(results[0].seconds)],
        "duration": median(durations),
    }  # fmt: skip
    rows = world.gather(own_row)
    seconds: dict[tuple[str, int], list[float]] = {}
    for slot, duration in (pair for row in rows for pair in row["seconds"]):
        seconds.setdefault(slot[0][:2], []).append(duration)
    clock = simulate(orders, stages, lambda slot: median(seconds[slot[0][:2]]))
    busy = sum(clock.busy)
    return {
        "schedule": name,
        "stages": stages,
        "loss_off": abs(sum(row["loss"] for row in rows) / loss - 1),
        "gradients_off": max(row["off"] for row in rows),
        "in_flight": max(row["held"] for row in rows) * len(orders) / stages,
        "weights_early": sum(row["early"] for row in rows),
        "products": sum(row["products"] for row in rows) / (shape.layers * shape.micro_batches),
        "bubble_replayed_percent": 100 * (1 - busy / (len(orders) * clock.end)),
        "times_ms": {kind: 1e3 * median(values) for kind in KINDS
                     if (values := [duration for key in seconds if key[0] == kind for duration in seconds[key]])},
        "median_ms": 1e3 * max(row["duration"] for row in rows),
    }  # fmt: skip


def _compare(gradient: torch.Tensor | None, right: torch.Tensor) -> float:
    """Return the largest difference as a share of the largest element, or infinity if there is no gradient."""
    if gradient is None or gradient.shape != right.shape:
        return math.inf
    return ((gradient - right).abs().max() / right.abs().max()).item()


@functools.cache
def compute_alone(shape: Shape) -> tuple[float, list[torch.Tensor]]:
    """Return the loss and the gradients of one process that has the whole model."""
    model = WholeBackward(shape.draw_weights())
    x, y = shape.draw_batch()
    losses = [shape.compute_loss(model.forward(inputs, []), target) for inputs, target in zip(x, y, strict=True)]
    loss = torch.stack(losses).sum()
    loss.backward()
    return loss.item(), [weight.grad for weight in model.weights if weight.grad is not None]


def find_orders(stages: int, micro_batches: int) -> list[list[Slot]]:
    """Return the orders of my_order.py. Raises ValueError or TypeError if no pipeline can work in them."""
    order_of_stage = importlib.import_module("my_order").order_of_stage
    kinds, orders = (FORWARD, INPUTS, WEIGHTS), []
    for stage in range(stages):
        pairs = [(str.__str__(kind), int(number)) for kind, number in order_of_stage(stage, stages, micro_batches)]
        if sorted(pairs) != sorted((kind, number) for kind in kinds for number in range(micro_batches)):
            raise ValueError(
                f"stage {stage} of {stages} needs each of {micro_batches} micro-batches once for each kind of piece"
            )
        orders.append([(Piece(kind, stage, number),) for kind, number in pairs])
    simulate(orders, stages, lambda _slot: 1)
    return orders


def run_your_order(
    world: World, shape: Sequence[int], steps: int, clocks: Sequence[Sequence[int]], pipelines: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Train in the order of my_order.py. Return its row, and the orders for each pair of stages and micro-batches in `clocks`.

    The orders of `pipelines` are only examined. A part that cannot order one of them raises its error.
    """
    torch.set_num_threads(1)
    sizes = Shape(*shape)
    for stages, micro_batches in pipelines:
        find_orders(stages, micro_batches)
    orders = find_orders(world.size, sizes.micro_batches)
    row = measure(world, sizes, "your order", orders, world.size, steps)
    own_held = [count_held(order) for order in orders]
    return {"row": row, "held": own_held, "orders": orders, "clocks": [find_orders(*pair) for pair in clocks]}


def run_your_split(world: World, shape: Sequence[int], steps: int, orders: Sequence[Any]) -> dict[str, Any]:
    """Train with the layers of my_split.py, and return the rows: as ZB-V, and in the learner's `orders` if there are any."""
    torch.set_num_threads(1)
    sizes, size = Shape(*shape), world.size
    slots = order_zero_bubble_v(size, sizes.micro_batches)
    rows = [measure(world, sizes, "zb-v, your split", slots, 2 * size, steps, YourSplit)]
    if orders:
        slots = [[tuple(Piece(*piece) for piece in slot) for slot in order] for order in orders]
        rows.append(measure(world, sizes, "your order and split", slots, size, steps, YourSplit))
    return {"rows": rows}
