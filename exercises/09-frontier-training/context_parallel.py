"""Context parallelism: attention over a sequence that no rank holds, by a ring and by an exchange of heads.

You will learn    which rank needs which keys, how a causal mask makes work uneven, and what ring, exchange and gathering send
You will produce  outputs and gradients that equal those of one process; pairs, bytes and messages of each way
Run it            python context_parallel.py --ranks-per-node=4                                        (four ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           context_parallel.py --ranks-per-node=2      (on the first node, --node-rank=1 on the second)
Your part         predict what contiguous shares cost; then my_ring_attention.py and my_ulysses.py
Reading           modules/09-frontier-training/lesson-4-context.md
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import context_trial as trial
import crew
import own_part
import ranks
import torch
import torch.distributed as dist
from attention_blocks import Shape, count_pairs, cut_contiguous, cut_striped
from bench import say
from gpu_times import find_device, find_gpus, measure_attention

NAMES = ("contiguous", "striped", "zigzag")
WIDTH_BYTES = 8  # all results are float64

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="attention over a sequence that no rank holds")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 on macOS")
parser.add_argument("--length", type=int, default=1024, help="tokens of the sequence, a multiple of twice the ranks")
parser.add_argument("--heads", type=int, default=16, help="heads of the queries")
parser.add_argument("--kv-heads", type=int, default=8, help="heads of keys and values, a multiple of the ranks")
parser.add_argument("--head-width", type=int, default=64, help="width of a head")
parser.add_argument("--causal", action=argparse.BooleanOptionalAction, default=True, help="a token sees no later token")
parser.add_argument("--shares", default="contiguous,striped,zigzag", help="who holds which tokens; zigzag is your share")
args = parser.parse_args()
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
names = list(dict.fromkeys(args.shares.split(",")))
if unknown := [name for name in names if name not in NAMES]:
    parser.error(f"--shares has {unknown[0]!r}: choose from {', '.join(NAMES)}")
if "contiguous" not in names:
    parser.error("--shares needs contiguous, with which the others are compared")
if size < 2:
    parser.error("one rank has no other rank to send keys to: take two nodes (deploy 9 --nodes 2), or --ranks-per-node=2")
if args.length < 2 * size or args.length % (2 * size):
    parser.error(f"--length ({args.length}) must be a multiple of twice the number of ranks, {2 * size}")
if args.kv_heads < 1 or args.heads % args.kv_heads or args.kv_heads % size:
    parser.error(f"--kv-heads ({args.kv_heads}) must be a multiple of the ranks, {size}, and --heads of --kv-heads")

# --- set-up ------------------------------------------------------------------------------------------------------------
backend = os.environ.get("GPUCOURSE_BACKEND")
os.environ["GPUCOURSE_BACKEND"] = "gloo"  # the compared results are computed on CPUs, in float64
torch.set_num_threads(1)
crew.start(args.ranks_per_node)  # from here on this process is one rank
parts = {name: own_part.Process(name) for name in ("my_ring_attention.py", "my_ulysses.py")}
world = ranks.join()
shape = Shape(args.length, args.heads, args.kv_heads, args.head_width)

# --- the experiment ----------------------------------------------------------------------------------------------------
everyone = world.gather({"rank": world.rank, "node": bench.node_label()})
gathered = world.gather(trial.list_gathered(world, shape, args.causal, names))
settings: dict[str, Any] = {"shape": list(shape), "causal": args.causal, "names": names}
ring = parts["my_ring_attention.py"].run(world, "context_trial:use_ring", limit_s=45, **settings)
ulysses = parts["my_ulysses.py"].run(world, "context_trial:use_ulysses", limit_s=45, **settings)
gpus = find_gpus(world, backend)
gpu_times = measure_attention(gpus, args.length // size, args.heads, args.head_width)
if world.rank > 0:
    dist.destroy_process_group()
    sys.exit()


# --- the record --------------------------------------------------------------------------------------------------------
def combine(of_ranks: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return a row for each way and share: the worst error, and the most bytes and milliseconds of a rank."""
    rows = []
    for same in zip(*of_ranks, strict=True):
        row = dict(same[0])
        for key in row.keys() - {"way", "share", "whose"}:
            values = [other[key] for other in same if other[key] is not None]
            row[key] = max(values) if values else None
        rows.append(row)
    return rows


keys_bytes = args.kv_heads * (args.length // size) * args.head_width * WIDTH_BYTES  # keys of one rank; its values have as many
out_bytes = args.heads * (args.length // size) * args.head_width * WIDTH_BYTES
one_way = 2 * (size - 1) * (keys_bytes + out_bytes) // size  # q, k, v there, and the output back
formulas = {  # bytes that a rank sends forward, and in all
    "all keys gathered": (2 * (size - 1) * keys_bytes, None),
    "ring": (2 * (size - 1) * keys_bytes, (2 * (size - 1) + 4 * (size - 1) + 2) * keys_bytes),
    "Ulysses": (one_way, 2 * one_way),
}
ways = combine(gathered)
yours: dict[str, Any] = {
    "ring": dict.fromkeys(("output_off", "gradient_off", "bytes_off", "messages", "held_tensors", "too_much", "large_off")),
    "ulysses": dict.fromkeys(("output_off", "gradient_off", "bytes_off", "exchanges")),
    "slowest_over_mean": None,
}
cuts = {"contiguous": cut_contiguous, "striped": cut_striped}
work = [
    {"rank": rank, "share": name, "whose": "course",
     "pairs": count_pairs(cuts[name](args.length, size, rank), args.length, args.causal)}
    for name in names if name in cuts for rank in range(size)
]  # fmt: skip


def add_yours(key: str, rows: list[dict[str, Any]]) -> None:
    """Add your rows to all ways, and the figures that the checks compare."""
    ways.extend(rows)
    for row in rows:
        forward_bytes, all_bytes = formulas[row["way"]]
        row["bytes_off"] = abs(row["forward_bytes"] - forward_bytes) + abs(row["all_bytes"] - all_bytes)
    for name in yours[key]:
        if name in rows[0]:
            yours[key][name] = max(row[name] for row in rows)


if ring.state == "ran":
    rows = combine([result["rows"] for result in ring.results])
    for row, *of_ranks in zip(rows, *(result["rows"] for result in ring.results), strict=True):
        row["too_much"] = max(other["computed"] / other["needed"] for other in of_ranks)
    add_yours("ring", rows)
    yours["ring"]["large_off"] = max(result["large_off"] for result in ring.results)
    if "zigzag" in names:
        pairs = [result["work"]["zigzag"] for result in ring.results]
        work += [{"rank": rank, "share": "zigzag", "whose": "yours", "pairs": count} for rank, count in enumerate(pairs)]
        yours["slowest_over_mean"] = max(pairs) * size / sum(pairs) if args.causal else None
if ulysses.state == "ran":
    add_yours("ulysses", combine(ulysses.results))
contiguous = [row["pairs"] for row in work if row["share"] == "contiguous"]
gathered_rows = [row for row in ways if row["whose"] == "course"]
outcomes = {"my_ring_attention.py": ring, "my_ulysses.py": ulysses}
errors = {
    f"{name[3:-3]}_error": "no error" if outcome.state == "ran" else outcome.text if outcome.state == "failed" else None
    for name, outcome in outcomes.items()
}
metrics = {
    **vars(args), **errors, "ranks": everyone, "ways": ways, "work": work, "yours": yours,
    "gpu": gpu_times, "gpus": [gpu_times] if gpus else [],
    "output_off": max(row["output_off"] for row in gathered_rows),
    "gradient_off": max(row["gradient_off"] for row in gathered_rows),
    "bytes_off": max(abs(row["forward_bytes"] - formulas[row["way"]][0]) for row in gathered_rows),
    "contiguous_over_mean": max(contiguous) * size / sum(contiguous), "ring_forward_bytes": formulas["ring"][0],
    "ring_messages": 6 * size - 4,
    "contiguous_ways": [row for row in ways if row["share"] == "contiguous"],
}  # fmt: skip
titles = {"way": "way", "share": "share", "whose": "whose", "output_off": "output off", "gradient_off": "gradients off",
          "forward_bytes": "bytes forward", "all_bytes": "in all", "messages": "messages"}  # fmt: skip
bench.say_table(ways, titles, title=f"Attention over {args.length:,} tokens on {size} ranks, in float64")
title = "Pairs of a query and a key that each rank computes"
bench.say_table(work, {"share": "share", "whose": "whose", "rank": "rank", "pairs": "pairs"}, title=title)
more = {"my_ring_attention.py": "rows of your ring, and of your share", "my_ulysses.py": "rows of your Ulysses"}
for name, outcome in outcomes.items():
    if outcome.state == "open":
        say(f"{name} is open: once it is written, {more[name]} will be here. {outcome.text}")
    elif outcome.state == "failed":
        say(f"{name}: {outcome.text}")
bench.keep_files(__file__, *parts)
path = bench.write_metrics("context-parallel/1", find_device(gpus), world_size=size, seed=3, metrics=metrics)
bench.say_end(path, find_device(gpus))
dist.destroy_process_group()
