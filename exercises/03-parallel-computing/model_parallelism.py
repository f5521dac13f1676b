"""Model parallelism: the layers of one model on several ranks, first with one rank working at a time, then as a pipeline.

You will learn    what happens when layers are split over ranks (all but one wait); how micro-batches fill the gaps; GPipe
                  and 1F1B; the bubble, and its formula (p - 1) / (m + p - 1)
You will produce  proof that the split model trains like the whole one; metrics.json with the bubble for each m
Run it            torchrun --nproc-per-node=2 model_parallelism.py --hidden 256 --batch-size 256 --steps 5    (two ranks here)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           model_parallelism.py                     (on the first node; --node-rank=1 on the second)
Your part         `order_of_stage` in my_schedule.py; then give one rank more layers in `shares`, and explain the bubble
Reading           modules/03-parallel-computing/lesson-3-dividing.md, "The pipeline and its bubble"
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import bubble
import ranks
import stages
import torch
import torch.distributed as dist
from bench import say
from torch import nn
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe

SEED, CLASSES = 0, 10
SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="layers split over ranks; the bubble of a pipeline, measured and predicted")
parser.add_argument(
    "--micro-batches", type=int, default=8, help="pieces of a batch in training; the sweep includes this number"
)
parser.add_argument(
    "--schedule", type=str, default="1f1b", choices=[*SCHEDULES], help="the schedule in training; the sweep includes both"
)
parser.add_argument("--batch-size", type=int, default=2048, help="samples of one step, in all micro-batches together")
parser.add_argument("--hidden", type=int, default=2048, help="width of each layer")
parser.add_argument("--layers", type=int, default=16, help="layers of the model, divided over the ranks")
parser.add_argument("--steps", type=int, default=20, help="timed steps of each measurement, and training steps")
args = parser.parse_args()
sweep = sorted({1, 2, 4, 8, args.micro_batches})
if min(args.micro_batches, args.batch_size, args.hidden, args.layers, args.steps) < 1:
    parser.error("every number must be at least 1")
if any(args.batch_size % m for m in sweep):
    parser.error(f"--batch-size must be a multiple of each of {sweep}: a batch is cut into equal micro-batches")

# --- set-up: every rank builds the same whole model, and keeps its share of the layers -------------------------------------
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
if size < 2 or args.layers < size or (args.schedule == "1f1b" and args.micro_batches < size):
    dist.destroy_process_group()
    sys.exit(
        f"a pipeline needs at least 2 ranks (here {size}), a layer for each (--layers {args.layers}), and with 1f1b at least "
        f"as many micro-batches as ranks (--micro-batches {args.micro_batches})"
    )
torch.set_num_threads(1)  # on CPUs one thread for each rank, so that its CPU time is the time in which it was busy
torch.backends.cuda.matmul.allow_tf32 = False
first, last, everything = rank == 0, rank == size - 1, range(args.layers)
shares = [range(args.layers * r // size, args.layers * (r + 1) // size) for r in range(size)]
layers = shares[rank]  # of the layers


class Layer(nn.Module):
    """A layer of the split model. All layers do the same work, so equal shares of layers are equal work."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def build(share: range) -> nn.Sequential:
    torch.manual_seed(SEED)
    model = nn.Sequential(*(Layer(args.hidden) for _ in everything), nn.Linear(args.hidden, CLASSES))
    return model[share.start : share.stop + (share.stop == args.layers)].to(device)  # the last rank has the output layer, too


source = torch.Generator().manual_seed(SEED)
x, loss_of = torch.randn(args.batch_size, args.hidden, generator=source), nn.functional.cross_entropy
y = (x @ torch.randn(args.hidden, CLASSES, generator=source)).argmax(dim=1).to(device)  # a teacher network gives the labels
x, part, watch = x.to(device), build(layers), stages.Watch(device)
say(f"rank {rank} of {size} on {bench.node_label()} ({device}) has layers {layers.start} to {layers.stop - 1} of {args.layers}")


# --- the naive way, by hand: receive, compute, send. A rank that has received nothing yet waits ----------------------------
def naive_step() -> torch.Tensor | None:
    received, loss = x, None
    if not first:
        received = torch.empty_like(x, requires_grad=True)
        dist.recv(received.detach(), rank - 1)
    with watch.piece(bubble.FORWARD, 0):
        output = part(received)
    if last:
        output, gradient = (loss := loss_of(output, y)), torch.ones((), device=device)
    else:
        dist.send(output.detach(), rank + 1)
        dist.recv(gradient := torch.empty_like(output), rank + 1)
    with watch.piece(bubble.BACKWARD, 0):
        output.backward(gradient)
    if not first:
        dist.send(received.grad, rank - 1)
    return loss


# --- the pipeline: the batch in micro-batches, so that a rank works on one while its neighbours work on others -------------
def pipeline(schedule: str, micro_batches: int) -> Callable[[], torch.Tensor | None]:
    stage = stages.WatchedStage(watch, part, rank, size, device)
    runner = SCHEDULES[schedule](stage, micro_batches, loss_fn=loss_of)  # sends to and receives from its neighbours

    def step() -> torch.Tensor | None:
        losses: list[torch.Tensor] = []
        runner.step(*[x] * first, **({"target": y, "losses": losses} if last else {}))
        return torch.stack(losses).mean() if last else None

    return step


# --- each way: is it the gradient of the whole model? How long was each rank busy, and how long did the step take? --------
def whole_step(model: nn.Module) -> torch.Tensor:
    (loss := loss_of(model(x), y)).backward()
    return loss.detach()


def mine_of(model: nn.Sequential) -> Iterator[nn.Parameter]:
    return model[layers.start : layers.stop + last].parameters()


def measure(way: str, micro_batches: int, step: Callable[[], torch.Tensor | None]) -> dict[str, object]:
    for _ in range(2):  # cold: connections, memory
        part.zero_grad(set_to_none=True)
        step()
    error = world.error(ranks.flat(weight.grad for weight in part.parameters()), gradient)
    seconds, orders = [], []
    for _ in range(args.steps):
        part.zero_grad(set_to_none=True)
        watch.take()
        world.wait_for_all()
        seconds += bench.time_each(step, device, 1)
        orders.append(watch.take())
    row = {"way": way, "micro_batches": micro_batches, **bench.spread_ms(world.slowest(seconds)), "gradient_error": error}
    row |= bubble.summary(world.gather(stages.typical(orders)), row["median_ms"])
    say(f"rank {rank}: {way}, {micro_batches} micro-batches: busy {row['busy_ms'][rank]:.1f} of {row['median_ms']:.1f} ms")
    return row


whole_step(whole := build(everything))
gradient = ranks.flat(weight.grad for weight in mine_of(whole))
alone_s = bench.time_each(lambda: whole_step(whole), device, args.steps) if first else []
world.wait_for_all()  # the other ranks are idle while rank 0 measures
naive = measure("naive", 1, naive_step)
rows = [measure(way, m, pipeline(way, m)) for way in SCHEDULES for m in sweep if way == "gpipe" or m >= size]

# --- training: the parts together, and for comparison one process with the whole model, take the same steps ----------------
whole, step, losses = build(everything), pipeline(args.schedule, args.micro_batches), []
optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in (part, whole)]
for number in range(1, args.steps + 1):
    part.zero_grad(set_to_none=True)
    whole.zero_grad(set_to_none=True)
    loss, loss_whole = step(), whole_step(whole).item()
    for optimizer in optimizers:
        optimizer.step()
    if last:
        losses.append({"step": number, "loss": loss.item(), "loss_one_process": loss_whole})
        say(f"step {number}/{args.steps}: loss {loss:.6f} in {size} parts, {loss_whole:.6f} in one process")
losses, hosts = world.gather(losses)[-1], world.gather(bench.node_label())
parameter_error = world.error(ranks.flat(part.parameters()), ranks.flat(mine_of(whole)))

# --- the record --------------------------------------------------------------------------------------------------------------
if first:
    one_ms = bench.percentile(alone_s, 50) * 1e3
    for row in (every_way := [naive, *rows]):
        row["speedup"] = one_ms / row["median_ms"]
    eight = next(row for row in rows if row["micro_batches"] == 8)  # of GPipe, which comes first
    overlap_points = max(0.0, naive["bubble_predicted_percent"] - naive["bubble_wall_percent"])
    for row in every_way if device.type == "cpu" else ():
        row["bubble_wall_percent"] = None  # ranks that share cores, and copies on them, hide the bubble whatever m is
    parts = [{"rank": r, "host": hosts[r], "first_layer": s.start, "layers": len(s)} for r, s in enumerate(shares)]
    metrics = {
        **vars(args), "backend": dist.get_backend(), "stages": parts, "one_process": bench.spread_ms(alone_s),
        "naive": naive, "sweep": rows, "every_way": every_way, "losses": losses,
        "loss_error": max(abs(row["loss"] / row["loss_one_process"] - 1) for row in losses),
        "parameter_error": parameter_error, "pipeline_speedup": naive["median_ms"] / eight["median_ms"],
        "naive_overlap_points": overlap_points, "gpipe_in_flight": eight["in_flight"],
        "bubble_of_eight_percent": eight["bubble_replayed_percent"],
        "most_in_flight_1f1b": max((row["in_flight"] for row in rows if row["way"] == "1f1b"), default=None),
    }  # fmt: skip
    titles = {"way": "way", "micro_batches": "m", "median_ms": "step ms", "bubble_predicted_percent": "bubble % predicted"}
    titles |= {"bubble_replayed_percent": "from busy times", "bubble_wall_percent": "by the clock", "in_flight": "in flight"}
    bench.say_table(every_way, titles)
    say(f"one process: {one_ms:.1f} ms")
    if device.type == "cpu":
        say(
            "'From busy times' is the bubble with a processor for each rank. 'By the clock' means nothing here, because "
            "these ranks share cores."
        )
    path = bench.write_metrics("model_parallelism/1", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
