"""All-reduces by size and topology: a ring, a tree, halves, and two levels, as data, on real ranks, and on 128 virtual GPUs.

You will learn    why no all-reduce is best for every size, and why the partner of a message decides what it costs
You will produce  rounds, messages, bytes and bytes between nodes for each algorithm; simulated times on a cluster
Run it            python all_reduces.py --ranks-per-node=4 --numbers=24000                            (four ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           all_reduces.py --ranks-per-node=4     (on the first node, --node-rank=1 on the second)
Your part         predict which is faster; then my_rounds.py (two all-reduces) and my_seconds.py (their time by formula)
Reading           modules/09-frontier-training/lesson-2-collectives.md
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import crew
import gloo_rounds
import nccl_algorithms
import own_part
import ranks
import torch
import torch.distributed as dist
from algorithms import ALGORITHMS, TREE_PIECES
from bench import say

SIZE_NAMES = {1 << 10: "1 KiB", 1 << 14: "16 KiB", 1 << 20: "1 MiB", 1 << 24: "16 MiB", 1 << 28: "256 MiB"}
COLUMNS = {"ring": "ring", "doubling": "doubling", "tree": "tree", "tree_in_pieces": f"tree in {TREE_PIECES} pieces",
           "yours_halving": "yours, halving", "yours_two_levels": "yours, two levels"}  # fmt: skip
MAX_VIRTUAL = 256
PUZZLES = ((8, 10), (16, 10), (32, 10), (8, 25), (16, 5), (32, 25), (8, 40), (16, 20))  # ranks, latency in us
OPEN_ROUNDS = dict.fromkeys(("wrong", "bytes_over", "messages_over", "crossing_times", "virtual_wrong"))
OPEN_SECONDS = dict.fromkeys(("formula_off", "chosen_best"))

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="all-reduces by size and topology")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 on macOS and with GPUs")
parser.add_argument("--numbers", type=int, default=1_000_000, help="numbers of 8 bytes in the tensor of the real ranks")
parser.add_argument("--nodes", type=int, default=16, help="nodes of the virtual cluster, a power of two")
parser.add_argument("--per-node", type=int, default=8, help="GPUs of each virtual node, a power of two")
parser.add_argument("--latency-us", type=float, default=10.0, help="latency of a message between virtual nodes")
parser.add_argument("--gb-per-s", type=float, default=50.0, help="bandwidth of a network card of the virtual cluster")
parser.add_argument("--inside-us", type=float, default=3.0, help="latency of a message inside a virtual node")
parser.add_argument("--inside-gb-per-s", type=float, default=300.0, help="bandwidth of a GPU inside a virtual node")
parser.add_argument(
    "--shared-card",
    action=argparse.BooleanOptionalAction,
    default=True,
    help="one network card for each node, not for each GPU",
)
parser.add_argument("--puzzle", type=int, default=1, choices=range(1, 9), help="the case of the question about the crossover")
args = parser.parse_args()
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
per_node = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) * args.ranks_per_node
if min(args.ranks_per_node, args.nodes, args.per_node, args.numbers) < 1:
    parser.error("all numbers must be at least 1")
if size < 2:
    parser.error("one rank has nothing to sum: take two nodes (deploy 9 --nodes 2), or --ranks-per-node=2 on CPUs")
if size & (size - 1) or size % per_node:
    parser.error(f"the number of ranks ({size}) must be a power of two: recursive doubling pairs all of them in every round")
if args.numbers < size:
    parser.error(f"--numbers ({args.numbers}) must be at least the number of ranks, {size}")
if args.nodes & (args.nodes - 1) or args.per_node & (args.per_node - 1) or not 2 <= args.nodes * args.per_node <= MAX_VIRTUAL:
    parser.error(f"--nodes and --per-node must be powers of two, and their product from 2 to {MAX_VIRTUAL}")
if min(args.latency_us, args.gb_per_s, args.inside_us, args.inside_gb_per_s) <= 0:
    parser.error("latencies and bandwidths must be above 0")

# --- set-up ------------------------------------------------------------------------------------------------------------
torch.set_num_threads(1)
crew.start(args.ranks_per_node)  # from here on this process is one rank
rounds_part, seconds_part = (own_part.Process(name, backend="gloo") for name in ("my_rounds.py", "my_seconds.py"))
world = ranks.join()
cluster = {key: getattr(args, key) for key in ("nodes", "per_node", "latency_us", "gb_per_s", "inside_us", "inside_gb_per_s",
                                               "shared_card")}  # fmt: skip

# --- the experiment ----------------------------------------------------------------------------------------------------
hosts = world.gather(bench.node_label())
real = [
    gloo_rounds.measure(world, name, make(size, args.numbers), args.numbers, per_node, world.waiting_room)
    for name, make in ALGORITHMS.items()
]
nccl = nccl_algorithms.measure(world)
outcome = rounds_part.run(world, "gloo_rounds:measure_yours", limit_s=25, numbers=args.numbers, per_node=per_node,
                          cluster=cluster)  # fmt: skip
world.wait_for_all()
dist.destroy_process_group()
if world.rank > 0:
    sys.exit()

# --- rank 0 computes the times of the virtual cluster, and writes the record ---------------------------------------------
virtual_ranks = args.nodes * args.per_node
virtual: list[dict[str, Any]] = []
for name, make in ALGORITHMS.items():
    virtual += gloo_rounds.time_virtual(name, lambda count, make=make: make(virtual_ranks, count), cluster)
flat = gloo_rounds.list_flat(cluster, {name: ALGORITHMS[name] for name in ("ring", "doubling", "tree")})
yours: dict[str, Any] = {"rounds": OPEN_ROUNDS, "seconds": OPEN_SECONDS, "chosen": []}
if outcome.state == "ran":
    result = outcome.results[0]
    virtual, flat = virtual + result["virtual"], flat + result["flat"] * (not result["virtual_wrong"])
    least_bytes = gloo_rounds.NUMBER_BYTES * (2 * args.numbers * (size - 1) / size + 2 * size)  # chunks may be 1 longer
    real += result["real"]
    crossing = [row["crossing_times"] for row in result["real"] if row["crossing_times"] is not None]
    yours["rounds"] = {
        "wrong": max(row["wrong"] for row in result["real"]), "virtual_wrong": result["virtual_wrong"],
        "bytes_over": max(max(0.0, row["bytes"] - least_bytes) for row in result["real"]),
        "messages_over": result["real"][0]["messages"] - 2 * (size.bit_length() - 1),
        "crossing_times": max(crossing, default=0.0),
    }  # fmt: skip
choices = seconds_part.run(None, "gloo_rounds:choose_with_yours", limit_s=20, cluster=cluster, rows=flat)
if choices.state == "ran":
    yours["seconds"], yours["chosen"] = choices.results[0], choices.results[0].pop("chosen")
sizes = []
for size_bytes, title in SIZE_NAMES.items():
    times = {row["algorithm"]: row["sim_us"] for row in virtual if row["bytes"] == size_bytes}
    fastest = min(times, key=times.__getitem__)
    sizes.append({"size": title, "fastest": fastest, **{key: times.get(name) for key, name in COLUMNS.items()}})
outcomes = {"rounds": outcome, "seconds": choices}
puzzle_ranks, puzzle_us = PUZZLES[args.puzzle - 1]
metrics = {
    **vars(args), "ranks": [{"rank": number, "host": host} for number, host in enumerate(hosts)], "real": real,
    "virtual": virtual, "sizes": sizes, "yours": yours, "nccl": nccl,
    "errors": {name: "no error" if part.state == "ran" else part.text for name, part in outcomes.items()},
    "sums_wrong": max(row["wrong"] for row in real[: len(ALGORITHMS)]),
    "bytes_off": max(row["bytes_off"] for row in real), "messages_off": max(row["messages_off"] for row in real),
    "ring_off": gloo_rounds.find_ring_off(), "ring_over_doubling": sizes[2]["ring"] / sizes[2]["doubling"],
    "ring_messages": real[0]["messages"], "ring_crossing_bytes": real[0]["crossing_bytes"],
    "doubling_crossing_bytes": real[1]["crossing_bytes"], "puzzle_ranks": puzzle_ranks, "puzzle_latency_us": puzzle_us,
    "crossover_bytes": gloo_rounds.find_crossover(puzzle_ranks, puzzle_us),
}  # fmt: skip
say(f"\nAll-reduces of {args.numbers:,} numbers on {size} ranks of {size // per_node} nodes (messages over gloo)")
titles = {"algorithm": "algorithm", "wrong": "wrong", "rounds": "rounds", "messages": "messages", "bytes": "bytes sent"}
bench.say_table(real, titles | {"crossing_bytes": "bytes that cross", "median_ms": "ms"})
say(f"\nSimulated times in µs on {args.nodes} nodes of {args.per_node} GPUs")
bench.say_table(sizes, {"size": "size"} | COLUMNS | {"fastest": "fastest"})
say(
    f"The puzzle: {puzzle_ranks} ranks with a node each, {puzzle_us} µs and 50 GB/s. At which size does the ring become faster?"
)
for name, part in outcomes.items():
    if part.state == "open":
        say(f"my_{name}.py is not written yet: rows of yours would follow. {part.text}")
    elif part.state == "failed":
        say(f"my_{name}.py: {part.text}")
path = bench.write_metrics("all_reduces/1", world.device, world_size=size, seed=0, metrics=metrics)
bench.say_end(path, world.device)
