"""A mixture of experts on several ranks: rows to their experts and back, balanced loads, capacity, and a limit of nodes.

You will learn    what dispatch and combine send, in both passes, and what keeps experts equally busy
You will produce  a layer on several ranks with the output and gradients of one process, and loads in three ways of balancing
Run it            python mixture.py --ranks-per-node=2 --experts=8 --top=2 --tokens=96 --width=32 --steps=120   (two ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           mixture.py --ranks-per-node=2     (on the first node, --node-rank=1 on the second)
Your part         predict what a limit of nodes saves; then my_gate.py (the router) and my_dispatch.py (rows there and back)
Reading           modules/09-frontier-training/lesson-3-experts.md
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import balancing
import bench
import crew
import dispatch_ranks
import own_part
import ranks
import torch
import torch._dynamo  # optimizers import it, which takes seconds: here it is imported once for all ranks
import torch.distributed as dist
from bench import say
from gpu_times import find_device, find_gpus, measure_experts
from routing import Layer, draw_tokens, list_capacities, list_limits

LIMITS, MAX_FACTOR = (8, 4, 2, 1), 100
OPEN_GATE = dict.fromkeys(("choice_off", "weights_off", "loss_off", "largest_of_none", "largest_of_loss", "largest_of_bias"))
OPEN_DISPATCH = dict.fromkeys(("output_off", "gradients_off", "bytes_over", "pairs_off"))

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a mixture of experts on several ranks")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 on macOS and with GPUs")
parser.add_argument("--experts", type=int, default=64, help="experts of the layer, a multiple of the number of ranks")
parser.add_argument("--top", type=int, default=8, help="experts of a token")
parser.add_argument("--tokens", type=int, default=512, help="tokens of each rank")
parser.add_argument("--width", type=int, default=128, help="numbers of a token")
parser.add_argument("--steps", type=int, default=200, help="training steps of each way of balancing")
parser.add_argument("--capacity-factors", default="1.0,1.25,2.0", help="room of an expert, in units of the mean")
parser.add_argument("--balance", default="none,loss,bias", help="ways of balancing: none, loss, bias")
parser.add_argument("--weight", type=float, default=0.1, help="weight of the balance loss")
parser.add_argument("--speed", type=float, default=0.01, help="step of the bias")
parser.add_argument("--skew", type=float, default=1.0, help="how much more often the first experts are chosen")
args = parser.parse_args()
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
ways = [way.strip() for way in args.balance.split(",")]
try:
    factors = [float(factor) for factor in args.capacity_factors.split(",")]
except ValueError:
    parser.error("--capacity-factors must be numbers, separated by commas")
if not all(0 < factor <= MAX_FACTOR for factor in factors):
    parser.error(f"--capacity-factors must be above 0 and at most {MAX_FACTOR}")
if min(args.ranks_per_node, args.experts, args.top, args.tokens, args.width) < 1 or args.steps < 4:
    parser.error("sizes must be above 0, and --steps at least 4")
if size < 2:
    parser.error("one rank has nothing to send: take two nodes (deploy 9 --nodes 2), or --ranks-per-node=2 on CPUs")
if args.experts % size:
    parser.error(f"--experts ({args.experts}) must be a multiple of the number of ranks, {size}")
if args.top > args.experts:
    parser.error(f"--top ({args.top}) must be at most --experts ({args.experts})")
if not set(ways) <= {"none", "loss", "bias"} or len(set(ways)) < len(ways):
    parser.error("--balance must be different words of none, loss and bias, separated by commas")
if balancing.BATCH % size:
    parser.error(f"the number of ranks ({size}) must divide the {balancing.BATCH} tokens of a training step")

# --- set-up ------------------------------------------------------------------------------------------------------------
backend = os.environ.get("GPUCOURSE_BACKEND")
os.environ["GPUCOURSE_BACKEND"] = "gloo"  # the compared results are computed on CPUs, in float64
torch.set_num_threads(1)
crew.start(args.ranks_per_node)  # from here on this process is one rank
gate_part, dispatch_part = (own_part.Process(name) for name in ("my_gate.py", "my_dispatch.py"))
world = ranks.join()
layer = Layer(args.experts, args.width)
tokens = draw_tokens(args.tokens * size, layer, args.top, args.skew)

# --- the experiment ----------------------------------------------------------------------------------------------------
hosts = world.gather(bench.node_label())
course = world.gather(dispatch_ranks.measure(world.rank, size, layer, tokens, dispatch_ranks.send_to_all))
in_turns = balancing.train(world.rank, size, args.steps, "in turns, no router")
gate = gate_part.run(world, "balancing:balance_with_yours", limit_s=40, steps=args.steps, ways=ways, weight=args.weight,
                     speed=args.speed)  # fmt: skip
dispatch = dispatch_part.run(world, "dispatch_ranks:send_with_yours", limit_s=25, experts=args.experts, width=args.width,
                             count=args.tokens, top=args.top, skew=args.skew)  # fmt: skip
gpus = find_gpus(world, backend)
gpu_times = measure_experts(gpus, args.experts, args.top, args.tokens, args.width)
world.wait_for_all()
dist.destroy_process_group()
if world.rank > 0:
    sys.exit()

# --- rank 0 compares with the formulas, and writes the record -----------------------------------------------------------
formula = dispatch_ranks.list_formula(tokens, layer, size)
row_bytes = args.width * dispatch_ranks.NUMBER_BYTES
all_bytes = (size - 1) * args.tokens * (row_bytes + args.experts // size * dispatch_ranks.NUMBER_BYTES)
moved: list[dict[str, Any]] = [{
    "label": "all tokens to all", "output_off": max(row["output_off"] for row in course),
    "gradients_off": max(row["gradients_off"] for row in course),
    **{f"{kind}_bytes": sum(row[f"{kind}_bytes"] for row in course) / size for kind in dispatch_ranks.KINDS},
}]  # fmt: skip
combine_bytes = (size - 1) * args.tokens * row_bytes
bytes_off = max(abs(row["dispatch_bytes"] - all_bytes) + abs(row["combine_bytes"] - combine_bytes) for row in course)
rank_rows = [
    {"rank": rank, "host": host, "pairs": row["pairs"], "by_formula_bytes": row["dispatch"] + row["combine"],
     "dispatch_formula_bytes": row["dispatch"], "sent_bytes": None, "back_bytes": None}
    for rank, (host, row) in enumerate(zip(hosts, formula, strict=True))
]  # fmt: skip
yours: dict[str, Any] = {"gate": OPEN_GATE, "dispatch": OPEN_DISPATCH}
balanced = [in_turns]
if gate.state == "ran":
    rows = gate.results[0]["rows"]
    balanced += rows
    largest = {way: row["largest_load"] for way, row in zip(ways, rows, strict=True)}
    worst = {key: max(result["faults"][key] for result in gate.results) for key in gate.results[0]["faults"]}
    yours["gate"] = OPEN_GATE | worst | {f"largest_of_{way}": load for way, load in largest.items()}
if dispatch.state == "ran":
    drawn, few = ([result[case] for result in dispatch.results] for case in ("drawn", "one rank"))
    for row, result in zip(rank_rows, drawn, strict=True):
        row |= {"sent_bytes": result["dispatch_bytes"] + result["combine_bytes"], "back_bytes": result["back_bytes"]}
    moved.append({
        "label": "yours", "output_off": max(row["output_off"] for row in drawn),
        "gradients_off": max(row["gradients_off"] for row in drawn),
        **{f"{kind}_bytes": sum(row[f"{kind}_bytes"] for row in drawn) / size for kind in dispatch_ranks.KINDS},
    })  # fmt: skip
    sent = [(row["sent_bytes"], row["back_bytes"], row["by_formula_bytes"]) for row in rank_rows]
    yours["dispatch"] = {
        "output_off": max(row["output_off"] for row in drawn + few),
        "gradients_off": max(row["gradients_off"] for row in drawn + few),
        "bytes_over": max(max(there, back) - limit for there, back, limit in sent),
        "pairs_off": sum(row["pairs"] for row in drawn) - tokens.chosen.numel(),
    }  # fmt: skip
capacity, limits = list_capacities(tokens, layer, size, factors), list_limits(LIMITS)
outcomes = {"gate": gate, "dispatch": dispatch}
metrics = {
    **vars(args), "ranks": rank_rows, "moved": moved, "balanced": balanced, "capacity": capacity, "limits": limits,
    "yours": yours, "gpu": gpu_times, "gpus": [gpu_times] if gpus else [],
    "loads": [{"way": row["way"], "expert": expert, "load": row["loads"][expert]} for row in balanced for expert in range(8)],
    "errors": {name: "no error" if part.state == "ran" else part.text for name, part in outcomes.items()},
    "output_off": moved[0]["output_off"], "gradients_off": moved[0]["gradients_off"], "bytes_off": bytes_off,
    "weight_gap": max(abs(row["dropped_weight_percent"] - row["dropped_percent"]) for row in capacity),
    "first_dispatch_bytes": formula[0]["dispatch"],
    "busiest_over_mean": max(row["pairs"] for row in formula) * size / tokens.chosen.numel(),
    "limit_of_four": limits[1]["kb_a_token"] / limits[0]["kb_a_token"], "in_turns_loss": in_turns["loss"],
}  # fmt: skip
say(f"\n{args.experts} experts on {size} ranks, {args.tokens} tokens each: output and gradients compared with one process")
titles = {"label": "sent", "output_off": "output off", "gradients_off": "gradients off"}
bench.say_table(moved, titles | {f"{kind}_bytes": f"{kind} bytes" for kind in dispatch_ranks.KINDS})
say("\nLoads of 8 experts in training, in units of the mean")
bench.say_table(balanced, {"way": "way", "largest_load": "largest", "smallest_load": "smallest", "loss": "loss"})
for name, part in outcomes.items():
    if part.state == "open":
        say(f"my_{name}.py is not written yet: rows of yours would follow. {part.text}")
    elif part.state == "failed":
        say(f"my_{name}.py: {part.text}")
path = bench.write_metrics("mixture/1", find_device(gpus), world_size=size, seed=7, metrics=metrics)
bench.say_end(path, find_device(gpus))
