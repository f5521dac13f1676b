"""Model parallelism: the layers of one model on several ranks, first with one rank working at a time, then as a pipeline.

You will learn    what happens when layers are split over ranks (all but one wait); how micro-batches fill the gaps; GPipe,
                  1F1B and interleaved stages; the bubble, and its formula (p - 1) / (m + p - 1)
You will produce  proof that the split model trains like the whole one; metrics.json with the bubble for each m
Run it            torchrun --nproc-per-node=2 model_parallelism.py --hidden 256 --batch-size 256 --steps 5    (two ranks here)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           model_parallelism.py                     (on the first node; --node-rank=1 on the second)
Your part         `order_of_stage` in my_schedule.py, which a pipeline here then follows; then change `shares`
Reading           modules/03-parallel-computing/lesson-3-dividing.md, "The pipeline and its bubble"
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import bubble
import ordered_pipeline
import own_part
import ranks
import stages
import torch
import torch.distributed as dist
from bench import say
from torch import nn
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="layers split over ranks; the bubble of a pipeline, measured and predicted")
parser.add_argument(
    "--micro-batches", type=int, default=8, help="pieces of a batch in training; the sweep includes this number"
)
parser.add_argument(
    "--schedule", type=str, default="1f1b", choices=["gpipe", "1f1b"], help="the schedule in training; the sweep has all"
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
learner_part = own_part.Process("my_schedule.py")  # it waits until the course's own measurements are done
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
first, last, all_layers = rank == 0, rank == size - 1, range(args.layers)
shares = [range(args.layers * r // size, args.layers * (r + 1) // size) for r in range(size)]
layers = shares[rank]  # of the layers


halves = [range(args.layers * s // (2 * size), args.layers * (s + 1) // (2 * size)) for s in (rank, size + rank)]
"""This rank's layers if it has two short stages, one in each half of the model."""


def build(share: range) -> nn.Sequential:
    return ordered_pipeline.build(share, args.layers, args.hidden).to(device)


loss_of, watch = nn.functional.cross_entropy, stages.Watch(device)
part, short_parts = build(layers), [build(half) for half in halves]
x, y = (tensor.to(device) for tensor in ordered_pipeline.make_batch(args.batch_size, args.hidden))
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
    if schedule == "interleaved":
        numbers = (rank, size + rank)
        rank_stages = [stages.WatchedStage(watch, short_parts[i], numbers[i], 2 * size, device) for i in range(2)]
    else:
        rank_stages = stages.WatchedStage(watch, part, rank, size, device)
    runner = SCHEDULES[schedule](rank_stages, micro_batches, loss_fn=loss_of)  # sends to and receives from its neighbours

    def step() -> torch.Tensor | None:
        losses: list[torch.Tensor] = []
        runner.step(*[x] * first, **({"target": y, "losses": losses} if last else {}))
        return torch.stack(losses).mean() if last else None

    return step


# --- each way: is it the gradient of the whole model? How long was each rank busy, and how long did the step take? --------
def whole_step(model: nn.Module) -> torch.Tensor:
    (loss := loss_of(model(x), y)).backward()
    return loss.detach()


def select_part(model: nn.Sequential, share: range = layers) -> Iterator[nn.Parameter]:
    return model[share.start : share.stop + (share.stop == args.layers)].parameters()


def fits(way: str, micro_batches: int) -> bool:
    """Return whether the schedule can run this many micro-batches, in equal stages."""
    if way == "interleaved":
        return micro_batches % size == 0 and args.layers % (2 * size) == 0
    return way == "gpipe" or micro_batches >= size


def measure(way: str, micro_batches: int, step: Callable[[], torch.Tensor | None]) -> dict[str, object]:
    parts = dict(zip(halves, short_parts, strict=True)) if way == "interleaved" else {layers: part}
    weights = [weight for module in parts.values() for weight in module.parameters()]
    right = ranks.flat(weight.grad for share in parts for weight in select_part(whole, share))
    seconds, orders, error = [], [], 0.0
    for number in range(2 + args.steps):  # the first two are cold: connections, memory
        for weight in weights:
            weight.grad = None
        watch.take()
        world.wait_for_all()
        seconds += bench.time_each(step, device, 1)
        orders.append(watch.take())
        if number == 0:
            error = world.error(ranks.flat(weight.grad for weight in weights), right)
    row = {"way": way, "micro_batches": micro_batches, **bench.spread_ms(world.slowest(seconds[2:])), "gradient_error": error}
    row |= bubble.summary(world.gather(stages.typical(orders[2:])), row["median_ms"])
    say(f"rank {rank}: {way}, {micro_batches} micro-batches: busy {row['busy_ms'][rank]:.1f} of {row['median_ms']:.1f} ms")
    return row


start = time.perf_counter()
whole_step(whole := build(all_layers))
alone_s = bench.time_each(functools.partial(whole_step, build(all_layers)), device, args.steps) if first else []
world.wait_for_all()  # the other ranks are idle while rank 0 measures
naive = measure("naive", 1, naive_step)
rows = [measure(way, m, pipeline(way, m)) for way in SCHEDULES for m in sweep if fits(way, m)]

# --- training: the parts together, and for comparison one process with the whole model, take the same steps ----------------
whole, step, losses = build(all_layers), pipeline(args.schedule, args.micro_batches), []
optimizers = [torch.optim.SGD(model.parameters(), lr=ordered_pipeline.LEARNING_RATE) for model in (part, whole)]
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
parameter_error = world.error(ranks.flat(part.parameters()), ranks.flat(select_part(whole)))

# --- yours: the same steps in the order of my_schedule.py, if it is written. It computes the whole model's gradient itself ----
outcome = learner_part.run(
    world, "ordered_pipeline:train", limit_s=max(60.0, 3 * (time.perf_counter() - start)), sweep=[m for m in sweep if m > 1],
    micro_batches=args.micro_batches, shares=[[share.start, share.stop] for share in shares],
    shape=[args.batch_size, args.hidden, args.layers], steps=args.steps,
)  # fmt: skip


def compare_order(outcome: own_part.Outcome) -> dict[str, object]:
    """Return the rows of the learner's order, with its differences from 1F1B in losses, memory and bubble."""
    yours = {"outcome": {"open": None, "ran": "ran", "failed": outcome.text}[outcome.state], "rows": []}
    if outcome.state != "ran":
        return yours | dict.fromkeys(("loss_error", "held_too_many", "bubble_above_points"))
    order_rows, order_losses = outcome.results[0]["rows"], outcome.results[-1]["losses"]
    errors = [abs(loss / row["loss_one_process"] - 1) for loss, row in zip(order_losses, losses, strict=True)]
    worst = {key: max(row[key] for row in order_rows) for key in ("held_too_many", "bubble_above_points")}
    return (
        yours
        | worst
        | {"rows": order_rows, "loss_error": max(errors, key=lambda error: math.inf if math.isnan(error) else error)}
    )


# --- the record --------------------------------------------------------------------------------------------------------------
if first:
    one_ms = bench.percentile(alone_s, 50) * 1e3
    yours = compare_order(outcome)
    for row in (every_way := [naive, *rows, *yours["rows"]]):
        row["speedup"] = one_ms / row["median_ms"]
    of_eight = {row["way"]: row for row in rows if row["micro_batches"] == 8}
    eight, one_stage, two_stages = (of_eight.get(way) for way in SCHEDULES)
    times = two_stages and two_stages["bubble_replayed_percent"] / one_stage["bubble_replayed_percent"]
    overlap_points = max(0.0, naive["bubble_predicted_percent"] - naive["bubble_wall_percent"])
    for row in every_way if device.type == "cpu" else ():
        row["bubble_wall_percent"] = None  # ranks share cores: other work fills the bubble
    parts = [{"rank": r, "host": hosts[r], "first_layer": s.start, "layers": len(s)} for r, s in enumerate(shares)]
    metrics = {
        **vars(args), "backend": dist.get_backend(), "stages": parts, "one_process": bench.spread_ms(alone_s),
        "naive": naive, "sweep": rows, "every_way": every_way, "losses": losses, "yours": yours,
        "pipelines": every_way[1:],
        "loss_error": max(abs(row["loss"] / row["loss_one_process"] - 1) for row in losses),
        "parameter_error": parameter_error, "pipeline_speedup": naive["median_ms"] / eight["median_ms"],
        "naive_overlap_points": overlap_points, "gpipe_in_flight": eight["in_flight"],
        "interleaved_bubble_times": times,
        "most_in_flight_1f1b": max((row["in_flight"] for row in rows if row["way"] == "1f1b"), default=None),
    }  # fmt: skip
    titles = {"way": "way", "micro_batches": "m", "median_ms": "step ms", "bubble_predicted_percent": "bubble % predicted"}
    titles |= {"bubble_replayed_percent": "from busy times", "bubble_wall_percent": "by the clock", "in_flight": "in flight"}
    bench.say_table(every_way, titles)
    say(f"one process: {one_ms:.1f} ms")
    if outcome.state == "open":
        say("my_schedule.py is unchanged. Once you write it, the table has rows for a pipeline that works in your order.")
    elif outcome.state == "failed":
        say(f"your order did not run: {outcome.text}")
    if device.type == "cpu":
        say(
            "'From busy times' is the bubble with a processor for each rank. 'By the clock' means nothing here, because "
            "these ranks share cores."
        )
    path = bench.write_metrics("model_parallelism/1", device, world_size=size, seed=ordered_pipeline.SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
