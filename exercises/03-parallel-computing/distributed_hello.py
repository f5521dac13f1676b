"""Distributed hello: processes find each other, each gets a number, and all agree on a sum.

You will learn    what a process group, a rank and a world size are; what AllReduce does; how long it takes for each tensor size
You will produce  one line from each rank with the value before and after; metrics.json with the sync time of each size,
                  of the library and of your own ring
Run it            python distributed_hello.py                                             (a world of one)
                  torchrun --nproc-per-node=2 distributed_hello.py --elements 1000000     (two ranks, one machine)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           distributed_hello.py                     (on the first node; --node-rank=1 on the second)
Your part         my_ring.py, your own AllReduce, which this run times alternately with gloo's; then change --elements
Reading           modules/03-parallel-computing/lesson.md, "What an AllReduce costs"
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py is beside this file

import bench
import own_part
import ranks
import ring_times
import torch
import torch.distributed as dist
from bench import say

SEED = 0

# --- knobs ---------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="table of ranks, exact AllReduce, sync time against tensor size")
parser.add_argument("--elements", type=int, default=10_000_000, help="largest tensor, in float32 elements")
args = parser.parse_args()
if args.elements < 1:
    parser.error("--elements must be at least 1")

part = own_part.Process("my_ring.py", backend="gloo")  # your ring runs in a separate process, so it cannot disturb this one

# --- set-up: torchrun tells each process who it is, in environment variables -----------------------------------------
if "RANK" not in os.environ:  # started with plain python
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
local_rank = int(os.environ["LOCAL_RANK"])  # the process on THIS node; `rank % GPUs` is wrong if nodes differ in GPUs
on_gpu = torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo"
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
timeout = timedelta(seconds=float(os.environ.get("GPUCOURSE_COLLECTIVE_TIMEOUT_S", "120")))

start = time.perf_counter()
if on_gpu and local_rank >= torch.cuda.device_count():  # NCCL would hang, or fail with a less clear message
    sys.exit(
        f"rank {os.environ['RANK']} is process {local_rank + 1} of its node, with {torch.cuda.device_count()} GPUs: start one "
        "process per GPU, or let all ranks compute on CPUs (GPUCOURSE_BACKEND=gloo)"
    )
if on_gpu:
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device, timeout=timeout)
else:
    dist.init_process_group("gloo", timeout=timeout)
rank, world = dist.get_rank(), dist.get_world_size()
init_s = time.perf_counter() - start


def slowest(seconds: list[float]) -> list[float]:
    """Return the largest value of all ranks for each element, because a collective ends when its last rank has finished."""
    times = torch.tensor(seconds, dtype=torch.float64, device=device)
    dist.all_reduce(times, op=dist.ReduceOp.MAX)
    return times.tolist()


def wrong_elements(tensor: torch.Tensor, reference: float) -> int:
    """Return how many elements are not exactly the expected value. NaN equals nothing, so it counts as wrong."""
    return int((tensor != reference).sum())


# --- the experiment: rank r contributes r + 1 in every element, so the sum is 1 + 2 + ... + n = n(n+1)/2 ---------------
say(f"rank {rank} of {world} is on {bench.node_label()} ({device}), process {os.getpid()}; joined in {init_s:.2f} s")
expected_sum, expected_mean = world * (world + 1) / 2, (world + 1) / 2

tensor = torch.full((args.elements,), float(rank + 1), device=device)
value_before = tensor[0].item()
dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
value_after, wrong = tensor[0].item(), wrong_elements(tensor, expected_sum)
average = tensor / world  # as DDP does with gradients; AllReduce itself only sums
wrong_average = wrong_elements(average, expected_mean)
verdict = "right on every element" if wrong + wrong_average == 0 else f"WRONG on {wrong + wrong_average} elements"
say(f"rank {rank}: before {value_before:g}, after the sum {value_after:g}, as an average {average[0].item():g}: {verdict}")

own_facts = {
    "rank": rank, "local_rank": local_rank, "host": bench.node_label(), "machine": socket.gethostname(),
    "pid": os.getpid(), "device": str(device), "init_s": round(init_s, 4),
    "before": value_before, "sum": value_after, "average": average[0].item(), "wrong": wrong + wrong_average,
}  # fmt: skip
participants: list[dict[str, object]] = [{}] * world
dist.all_gather_object(participants, own_facts)

# --- how long does it take? Warm, many times, the slowest rank, one size after another ---------------------------------
sizes = [4**power for power in range(16) if 4**power < args.elements] + [args.elements]
sync = []
for size in sizes:
    zeros = torch.zeros(size, device=device)  # AllReduce works in place: any other values would grow with each call
    dist.barrier()
    seconds = bench.time_calls(
        lambda zeros=zeros: dist.all_reduce(zeros), device, budget_s=0.25, agree=lambda estimate: slowest([estimate])[0]
    )
    dist.all_reduce(check := torch.full((size,), float(rank + 1), device=device))  # and is it right at this size?
    row = {"elements": size, "bytes": 4 * size, **bench.spread_ms(slowest(seconds))}
    sync.append(row | {"wrong": wrong_elements(check, expected_sum)})
    say(f"rank {rank}: {row['bytes']:>10,} bytes in sync after {row['median_ms']:.3f} ms (median of {row['samples']})")

wrong_in_all = torch.tensor([wrong + wrong_average + sum(row["wrong"] for row in sync)], device=device)
dist.all_reduce(wrong_in_all)

# --- your ring at the same sizes, alternating with gloo's AllReduce; both on CPUs -------------------------------------------
world_of_ranks = ranks.World(rank, world, device, dist.new_group(backend="gloo"))
outcome = part.run(world_of_ranks, "ring_times:measure", sizes=sizes, limit_s=60.0 + 2 * world)
ring = outcome.results[0] if outcome.state == "ran" else []
sync = [row | next((own_row for own_row in ring if own_row["elements"] == row["elements"]), ring_times.NO_ROW) for row in sync]

# --- the record: rank 0 writes it, and the tables come from the same rows ----------------------------------------------
if rank == 0:
    metrics = {
        "backend": dist.get_backend(), "elements": args.elements, "ranks": participants,
        "hosts": len({row["host"] for row in participants}), "machines": len({row["machine"] for row in participants}),
        "expected_sum": expected_sum, "wrong_elements": int(wrong_in_all),
        "init_s": max(row["init_s"] for row in participants), "sync": sync,
        "constant_up_to_bytes": max(row["bytes"] for row in sync if row["median_ms"] < 2 * sync[0]["median_ms"]),
        "times_of_4_kib": next((row["median_ms"] / sync[0]["median_ms"] for row in sync if row["bytes"] == 4096), None),
        "own": {"state": outcome.state, "result": ring_times.describe(outcome, world)},
        "rule_of_thumb": [{  # for two T4s in two machines; only GPUs can be compared with it
            "what": "AllReduce of 1 MiB over 2 GPUs (ms)", "expected": 1.0, "ideal": 0.5,
            "measured": next((row["median_ms"] for row in sync if row["bytes"] == 1 << 20 and on_gpu and world == 2), None),
        }],
    }  # fmt: skip
    titles = {"rank": "rank", "host": "node", "device": "device", "before": "before", "sum": "sum", "average": "average"}
    bench.say_table(participants, titles)
    titles = {"elements": "elements", "bytes": "bytes", "median_ms": "median ms", "p20_ms": "p20 ms", "p80_ms": "p80 ms"}
    titles |= {"ring_ms": "yours ms", "gloo_ms": "gloo alternating ms", "factor": "yours / gloo", "messages": "messages"}
    bench.say_table(sync, titles)
    if outcome.state == "open":
        say("Your ring is open in this run: once it is written, its times, messages and bytes are in this table and the plot.")
    elif outcome.state == "failed":
        say(f"Your ring failed: {outcome.text}")
    if not on_gpu:
        say("gloo on CPUs: the values are proof, but the times are those of this machine, not of GPUs and their network.")
    path = bench.write_metrics("distributed_hello/1", device, world_size=world, seed=SEED, metrics=metrics)
    bench.say_end(path, device)

dist.destroy_process_group()
