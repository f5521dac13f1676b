"""Gradient accumulation: the step of a large batch, from small batches one after another.

You will learn    how a batch that does not fit becomes several that do; why DDP must not synchronise in between
                  (no_sync); which weight each piece has, even in a last group that is not full
You will produce  three ways and yours compared: all-reduce calls, bytes, time, peak memory, and the error of each gradient
Run it            python gradient_accumulation.py --micro-batch 32 --accumulation-steps 4 --hidden 512        (a world of one)
                  torchrun --nproc-per-node=2 gradient_accumulation.py --micro-batch 32 --hidden 512          (two ranks here)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           gradient_accumulation.py        (on the first node; --node-rank=1 on the second)
Your part         my_group.py, your own group with no_sync, which then trains here like the three ways
Reading           modules/03-parallel-computing/lesson-2-training.md, "Gradient accumulation"
"""

from __future__ import annotations

import argparse
import functools
import gc
import math
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import grouped_training
import own_part
import ranks
import torch
import torch.distributed as dist
from bench import say
from ranks import flat
from torch import nn
from torch.nn.functional import cross_entropy

NONE, EACH, BIG = "no accumulation", "sync every micro-step", "big batch"

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="ways to process the same samples: time, traffic, memory, gradients")
parser.add_argument(
    "--accumulation-steps", type=int, default=8, help="micro-batches in a group, that is, in a step of the optimizer"
)
parser.add_argument("--micro-batch", type=int, default=256, help="samples per rank and micro-batch")
parser.add_argument("--hidden", type=int, default=2048, help="width of the two hidden layers")
parser.add_argument("--steps", type=int, default=50, help="timed groups of each way, after a fifth as many warm-up groups")
args = parser.parse_args()
if min(vars(args).values()) < 1 or args.accumulation_steps < 2:
    parser.error("every value must be at least 1, --accumulation-steps at least 2")

# --- set-up: each rank has different samples, but equally many; every model begins with the same weights ----------------
learner_part = own_part.Process("my_group.py")  # it waits until the course's own measurements are done
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
torch.backends.cuda.matmul.allow_tf32 = False  # float32 means float32, on every GPU
per_group = args.accumulation_steps * args.micro_batch
images, labels = grouped_training.make_samples(world, per_group)
build = functools.partial(grouped_training.build, world, args.hidden)


# --- the lesson: one group of samples, three ways ---------------------------------------------------------------------------
def one_group(way: str, model: nn.Module, optimizer: torch.optim.Optimizer, count: int) -> None:
    """Process this rank's first `count` samples, as one batch or in micro-batches, and make a step. With EACH, the loss of each
    micro-batch is divided by k, as is usual."""
    pieces = [count] if way == BIG else [len(piece) for piece in torch.arange(count).split(args.micro_batch)]
    divisor = args.accumulation_steps if way == EACH else 1
    begin = 0
    for piece in pieces:
        x, y = images[begin : begin + piece], labels[begin : begin + piece]
        if way == NONE or begin == 0:
            optimizer.zero_grad(set_to_none=True)
        begin += piece
        (cross_entropy(model(x), y) / divisor).backward()  # adds to the gradients, and DDP averages them over all ranks
        if way == NONE or begin == count:
            optimizer.step()


def gradient(way: str, count: int) -> torch.Tensor:
    model, optimizer, _ = build()
    one_group(way, model, optimizer, count)
    return flat(weight.grad for weight in model.parameters()).cpu()


def find_error(by_way: dict[str, torch.Tensor], way: str) -> float | None:
    """Return the largest difference between an element of `way` and of the big batch, divided by the largest element of the big
    batch."""
    return grouped_training.compute_error(by_way[way], by_way[BIG]) if BIG in by_way else None


def compute_saving(key: str) -> float | None:
    """Return a figure (`key`) with a sync after every micro-step, divided by the same figure of the learner's groups.

    Return infinity if the learner's figure is 0, and None if there is no part.
    """
    return (rows[1][key] / yours[key] if yours[key] else math.inf) if yours else None


def big_batch_fits() -> bool:
    """Return whether the big batch fits on every rank. A rank without room would leave the others waiting in the all-reduce."""
    (model, optimizer, _), too_big = build(), False
    try:
        with model.no_sync():
            one_group(BIG, model, optimizer, per_group)
    except torch.OutOfMemoryError:
        too_big = True
    return not any(world.gather(too_big))


# --- proof: the gradient of the pieces is the gradient of the whole, even if the last group is not full -----------------
group = f"{args.accumulation_steps} x {args.micro_batch} samples per group"
say(f"rank {rank} of {size} on {bench.node_label()} ({device}): {group}")
ways = [NONE, EACH, BIG] if big_batch_fits() else [NONE, EACH]
short = (
    args.accumulation_steps // 2 * args.micro_batch + args.micro_batch // 2
)  # a last group, with half a micro-batch at its end
start = time.perf_counter()
gradients, last = ({way: gradient(way, count) for way in ways} for count in (per_group, short))
rank_differences = [world.difference(gradient) for gradient in (*gradients.values(), *last.values())]

# --- the comparison: the same samples, the same start, the same number of groups -----------------------------------------
rows, weights = [], {}
for way in ways:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    model, optimizer, traffic = build()
    take = functools.partial(one_group, way, model, optimizer, per_group)
    bench.time_each(take, device, max(3, args.steps // 5))  # DDP reorders its buckets after the first step; memory is allocated
    traffic.clear()
    seconds = world.slowest(bench.time_each(take, device, args.steps))
    weights[way] = flat(model.parameters()).cpu()  # on the CPU: the next way needs the GPU's memory
    row = {
        "way": way, "updates": args.accumulation_steps if way == NONE else 1, "allreduce_calls": traffic["calls"] / args.steps,
        "allreduce_bytes": traffic["sent"] / args.steps, **bench.spread_ms(seconds),
        "samples_per_s": size * per_group / bench.percentile(seconds, 50),
        "peak_gpu_memory_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
        "gradient_error": find_error(gradients, way), "last_group_error": find_error(last, way),
    }  # fmt: skip
    rows.append(row)
    say(f"rank {rank}: {way:<22} {row['median_ms']:>8.2f} ms per group, {row['allreduce_calls']:.0f} all-reduces")
    del model, optimizer, take
for row in rows:
    row["weights_error"] = find_error(weights, row["way"])

# --- yours: the same samples in the groups of my_group.py, if it is written and there is a big batch to compare with ----------
outcome = None
if BIG in ways:
    settings = {name: getattr(args, name) for name in ("accumulation_steps", "micro_batch", "hidden", "steps")}
    outcome = learner_part.run(world, "grouped_training:train", limit_s=max(60.0, time.perf_counter() - start), **settings)
yours = outcome.results[0] if outcome and outcome.results else {}

# --- the record ----------------------------------------------------------------------------------------------------------
if rank == 0:
    keys = ("gradient_error", "last_group_error", "weights_error", "peak_gpu_memory_bytes", "samples_at_once")
    failure = outcome.text if outcome and outcome.state == "failed" else None
    every_row, big_row = rows[1], rows[2] if BIG in ways else None
    metrics = {
        **vars(args), "backend": dist.get_backend(), "parameters": weights[EACH].numel(),
        "gradient_bytes": 4 * weights[EACH].numel(), "ways": [*rows, *([yours] if yours else [])],
        "yours": {"outcome": "ran" if yours else failure} | {key: yours.get(key) for key in keys},
        "accumulated": [every_row], "big_batch": big_row,
        "gradient_differences_across_ranks": rank_differences,
        "last_group_error_by_k": every_row["last_group_error"],
        "last_step_by_k": (last[EACH].norm() / last[BIG].norm()).item() if big_row else None,
        "no_sync_speedup": every_row["median_ms"] / yours["median_ms"] if yours else None,
        "calls_saved_times": compute_saving("allreduce_calls"), "bytes_saved_times": compute_saving("allreduce_bytes"),
    }  # fmt: skip
    titles = {"way": "way", "updates": "updates", "allreduce_calls": "calls", "allreduce_bytes": "bytes", "median_ms": "ms"}
    bench.say_table(metrics["ways"], titles | {"peak_gpu_memory_bytes": "peak bytes", "gradient_error": "gradient off by"})
    if big_row:
        say(f"last group, not full: off by {every_row['last_group_error']:.2g} if each loss is divided by k")
    else:
        say("The big batch does not fit on every rank, so there is no comparison: run once with a smaller --micro-batch.")
    if outcome and outcome.state == "open":
        say("my_group.py is unchanged. Once you write it, the table has a row for a training run in your groups, with no_sync.")
    elif failure:
        say(f"your groups did not train: {failure}")
    if device.type == "cpu":
        say("On CPUs calls, bytes and gradients are as on GPUs; times are this computer's, and peak memory is not measured.")
    path = bench.write_metrics("gradient_accumulation/1", device, world_size=size, seed=grouped_training.SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
