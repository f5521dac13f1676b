"""Train a transformer on a mesh of ranks, as copies (dp) of stages (pp) of slices (tp), and compare it with one process.

    world = ranks.join()
    shape = Shape(layers=4, width=64, heads=4, length=32, batch_size=16, micro_batches=4, steps=4)
    alone = train_alone(world, shape)
    result = run_layout(world, Layout(dp=2, pp=2, tp=2), shape, alone)
    result.losses, alone.losses                 # equal except for rounding

Every rank makes each call. On CPUs, call `torch.set_num_threads(1)` first, so that a rank's processor time is its computing
time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass

import bench
import ranks
import stages
import torch
import torch.distributed as dist
from bubble import Piece
from mesh_model import DIMENSIONS, Layout, Shape, Stage, build_stage, lay_out, local
from mesh_traffic import MessageBytes, Traffic, predict_message_bytes
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor

COUNTED_STEP = 1  # the second: in the first one the stages also exchange the shapes of their messages
Prepare = Callable[[Stage, DeviceMesh], None]


@dataclass(frozen=True)
class Reference:
    """The results of one process: the loss of each step, its final weights by name, and the seconds of a warm step."""

    losses: list[float]
    weights: dict[str, torch.Tensor]
    seconds: list[float]


@dataclass(frozen=True)
class LayoutResult:
    """The results of a layout. Lists have an entry for each rank, unless their comment says otherwise."""

    mesh: torch.Tensor  # the rank at each place (dp, pp, tp)
    losses: list[float]  # of each step, over all copies
    seconds: list[float]  # of each warm step, the slowest rank
    weight_error: float  # the largest difference to one process, as a share of the largest weight
    weights_bytes: list[int]
    message_bytes: list[MessageBytes]  # counted in one step
    formula_bytes: list[MessageBytes]  # by formula
    layers: list[list[int]]  # which of the model's layers it holds
    pieces: list[list[Piece]]  # of one step, for each stage of the pipeline with dp 0 and tp 0
    message_ms: dict[str, float]  # by dimension: all messages of a step repeated with nothing else running


def loss_of(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy of the next token."""
    return nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


def make_optimizer(weights: Iterable[nn.Parameter], shape: Shape) -> torch.optim.Optimizer:
    """Return the optimizer. The whole model and a stage use the same kind."""
    return torch.optim.SGD(weights, lr=shape.rate, momentum=0.9, foreach=False)


def train_alone(world: ranks.World, shape: Shape) -> Reference:
    """Train the whole model on rank 0, and return the results on all ranks. The other ranks wait without using a core."""
    model, losses, seconds = shape.build().to(world.device), torch.zeros(shape.steps, dtype=torch.float64), []
    if world.rank == 0:
        optimizer = make_optimizer(model.parameters(), shape)
        for step in range(shape.steps):
            text = shape.draw_batch(step).to(world.device)
            run = functools.partial(_step_alone, model, optimizer, text, losses[step : step + 1])
            seconds += bench.time_each(run, world.device, 1)
    world.wait_for_all()
    flat = torch.cat([weight.detach().flatten() for weight in model.parameters()])
    dist.broadcast(flat, 0)
    shapes = {name: weight.shape for name, weight in model.named_parameters()}
    parts = flat.split([size.numel() for size in shapes.values()])
    weights = {name: part.view(size) for (name, size), part in zip(shapes.items(), parts, strict=True)}
    everything = world.gather((losses.tolist(), seconds[1:]))[0]
    return Reference(everything[0], weights, everything[1])


def _step_alone(model: nn.Module, optimizer: torch.optim.Optimizer, text: torch.Tensor, loss_at: torch.Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    (loss := loss_of(model(text[:, :-1]), text[:, 1:])).backward()
    optimizer.step()
    loss_at.copy_(loss.detach())


def average_over_copies(weights: Iterable[nn.Parameter], copies: DeviceMesh) -> None:
    """Average all gradients in one all_reduce among ranks with the same slice.

    A library that shards over dp averages them itself.
    """
    if copies.size() == 1:
        return
    names = [weight.device_mesh.mesh_dim_names or () if isinstance(weight, DTensor) else () for weight in weights]
    gradients = [local(weight.grad) for weight, axes in zip(weights, names, strict=True) if "dp" not in axes]
    if not gradients:
        return
    bucket = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(bucket, group=copies.get_group())
    bucket /= copies.size()
    for gradient, mean in zip(gradients, bucket.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def run_layout(
    world: ranks.World,
    layout: Layout,
    shape: Shape,
    single: Reference,
    *,
    mesh: torch.Tensor | None = None,
    prepare: Prepare | None = None,
) -> LayoutResult:
    """Train with that layout, and return the results, compared with those of one process.

    `mesh` has the rank at each place (dp, pp, tp). Without it, ranks are counted as in `lay_out`.
    `prepare(stage, mesh)` may change this rank's stage before training, for example by checkpointing or by fully_shard over
    mesh["dp"].

    Raises ValueError if the layout needs another number of ranks, or does not suit this training run (`Shape.find_problem`).
    """
    if layout.size != world.size or shape.find_problem(layout):
        raise ValueError(f"{layout} on {world.size} ranks: {shape.find_problem(layout) or 'another number of ranks'}")
    places = lay_out(layout) if mesh is None else mesh
    devices = DeviceMesh(world.device.type, places, mesh_dim_names=DIMENSIONS)
    stage = build_stage(shape, layout, devices, world.device)
    if prepare:
        prepare(stage, devices)
    training = _Training(world, layout, shape, devices, stage)
    for step in range(shape.steps):
        training.take(step)
    number, own_blocks = devices["pp"].get_local_rank(), [int(name) for name in stage.blocks]
    by_formula = predict_message_bytes(shape, layout, number)
    weights = dict(stage.named_parameters())
    whole = ranks.flat(weight.full_tensor() if isinstance(weight, DTensor) else weight for weight in weights.values())
    weight_bytes = sum(local(weight).nbytes for weight in weights.values())
    gathered = world.gather((weight_bytes, training.message_bytes, by_formula, own_blocks, stages.typical(training.pieces)))
    weights_bytes, message_bytes, formula_bytes, layers, pieces = (list(column) for column in zip(*gathered, strict=True))
    return LayoutResult(
        places, training.average_losses(), world.slowest(training.seconds),
        world.error(whole, ranks.flat(single.weights[name] for name in weights)), weights_bytes, message_bytes, formula_bytes,
        layers, [pieces[rank] for rank in places[0, :, 0].tolist()], training.time_messages(),
    )  # fmt: skip


class _Training:
    """This rank's share of a training run on a mesh."""

    def __init__(self, world: ranks.World, layout: Layout, shape: Shape, mesh: DeviceMesh, stage: Stage) -> None:
        self.world, self.layout, self.shape, self.mesh, self.stage = world, layout, shape, mesh, stage
        self.seconds: list[float] = []
        self.pieces: list[list[Piece]] = []
        self.message_bytes: MessageBytes = {}
        self._losses: list[torch.Tensor] = []
        self._watch = stages.Watch(world.device)
        self._optimizer = make_optimizer(stage.parameters(), shape)
        number, group = mesh["pp"].get_local_rank(), mesh["pp"].get_group()
        pipeline_stage = stages.WatchedStage(self._watch, stage, number, layout.pp, world.device, group=group)
        schedule = Schedule1F1B if shape.micro_batches >= layout.pp else ScheduleGPipe
        self._pipeline = schedule(pipeline_stage, shape.micro_batches, loss_fn=loss_of)

    def take(self, step: int) -> None:
        """Take one step. The times of the first two steps are not kept."""
        text = self.shape.draw_batch(step).to(self.world.device)
        own_text = text.chunk(self.layout.dp)[self.mesh["dp"].get_local_rank()]  # each copy has its own sequences
        self.world.wait_for_all()
        with Traffic(self.mesh) if step == COUNTED_STEP else nullcontext() as traffic:
            seconds = bench.time_each(lambda: self._step(own_text), self.world.device, 1)
        pieces = self._watch.take()
        if traffic:
            self.message_bytes = traffic.bytes_by_kind
        elif step > COUNTED_STEP:
            self.seconds += seconds
            self.pieces.append(pieces)

    def _step(self, text: torch.Tensor) -> None:
        losses: list[torch.Tensor] = []
        self._optimizer.zero_grad(set_to_none=True)
        inputs = [text[:, :-1].contiguous()] if self.stage.first else []  # torch 2.11 compares strides with its own piece's
        self._pipeline.step(*inputs, **({"target": text[:, 1:], "losses": losses} if self.stage.last else {}))
        average_over_copies(list(self.stage.parameters()), self.mesh["dp"])
        self._optimizer.step()
        mean = (
            torch.stack([loss.detach() for loss in losses]).double().mean() if losses else torch.zeros((), dtype=torch.float64)
        )
        self._losses.append(mean)

    def average_losses(self) -> list[float]:
        """Return on every rank the loss of each step, averaged over all copies. All slices of a last stage have it."""
        total = self.world.reduce(torch.stack(self._losses), dist.ReduceOp.SUM)
        return (total / (self.layout.dp * self.layout.tp)).tolist()

    def time_messages(self) -> dict[str, float]:
        """Return the slowest rank's milliseconds for all messages of a step, by dimension.

        The messages are repeated with nothing else running.
        """
        device, mesh, sizes = self.world.device, self.mesh, self.message_bytes
        piece = torch.zeros(
            self.shape.batch_size // self.layout.dp // self.shape.micro_batches * self.shape.length * self.shape.width,
            device=device,
        )
        bucket = torch.zeros(sizes["dp"] // 4, device=device)
        ways = {
            "dp": (lambda: dist.all_reduce(bucket, group=mesh["dp"].get_group()), 1 if self.layout.dp > 1 else 0),
            "pp": (lambda: self._exchange(piece), self.shape.micro_batches if self.layout.pp > 1 else 0),
            "tp": (lambda: dist.all_reduce(piece, group=mesh["tp"].get_group()), sizes["tp"] // piece.nbytes),
        }  # fmt: skip
        once = [
            bench.percentile(bench.time_each(call, device, 6)[1:], 50) * count if count else 0.0
            for call, count in ways.values()
        ]
        return dict(zip(ways, (1e3 * seconds for seconds in self.world.slowest(once)), strict=True))

    def _exchange(self, piece: torch.Tensor) -> None:
        """Send a micro-batch's activations to the next stage, and the same number of gradients back."""
        group = self.mesh["pp"].get_group()
        pipe, number = dist.get_process_group_ranks(group), self.mesh["pp"].get_local_rank()
        neighbours = [pipe[at] for at in (number - 1, number + 1) if 0 <= at < len(pipe)]
        operations = [dist.P2POp(way, piece.clone(), peer, group) for peer in neighbours for way in (dist.isend, dist.irecv)]
        for request in dist.batch_isend_irecv(operations):
            request.wait()
