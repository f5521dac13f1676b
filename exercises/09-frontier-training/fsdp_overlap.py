"""Overlap in FSDP: in which order torch issues a step, and which of its messages a GPU could not hide.

You will learn    which work of FSDP waits for which, what gathering ahead gains, and what it costs in memory
You will produce  the order of issue of torch's FSDP2, recorded on real ranks; its timeline; the exposed time for any order
Run it            python fsdp_overlap.py --ranks-per-node=2 --layers=8                                    (two ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           fsdp_overlap.py --ranks-per-node=1     (on the first node, --node-rank=1 on the second)
Your part         predict what is exposed in forward; then my_timeline.py, my_prefetch.py and my_overlap.yaml
Reading           modules/09-frontier-training/lesson-7-overlap.md
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import crew
import own_part
import ranks
import torch
import torch._dynamo  # FSDP2 imports it, which takes seconds: here it is imported once for all ranks
import torch.distributed as dist
from bench import say
from fsdp_clock import BACKWARD, FORWARD, GATHER, REDUCE, simulate_step
from fsdp_recorded import SEED, find_private_parts, record, trace
from gpu_times import find_device, find_gpus
from overlap_choice import LAYERS, ORDERS
from overlap_report import check_formulas, find_forward_share, judge_choice, make_rows

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="which of FSDP's messages are exposed")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 on macOS and with GPUs")
parser.add_argument("--layers", type=int, default=32, help="layers of the recorded model")
parser.add_argument("--gather-ms", type=float, default=2.0, help="time of a gather on the simulated clock")
parser.add_argument(
    "--forward-ms", type=float, default=3.0, help="time of a layer forward on the simulated clock; backward takes twice as long"
)
parser.add_argument("--reduce-ms", type=float, default=2.0, help="time of a reduce on the simulated clock")
parser.add_argument("--issue-us", type=float, default=20.0, help="time in which the processor issues one thing")
parser.add_argument("--room", type=int, default=4, help="layers that fit into memory at once")
parser.add_argument(
    "--uneven", action=argparse.BooleanOptionalAction, default=False, help="draw each layer's times from the puzzle"
)
parser.add_argument("--trace-width", type=int, default=2048, help="width of the layers in the trace, on GPUs")
parser.add_argument("--puzzle", type=int, default=1, help="the number from which uneven times are drawn")
args = parser.parse_args()
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
if size < 2 or args.ranks_per_node < 1:
    parser.error("FSDP needs two ranks: take two nodes (deploy 9 --nodes 2), or --ranks-per-node=2")
if args.layers < 5:
    parser.error(f"--layers ({args.layers}) must be at least 5, more than are gathered ahead")
if min(args.gather_ms, args.forward_ms, args.reduce_ms) <= 0 or args.issue_us < 0:
    parser.error("all times must be positive; --issue-us may be 0")
if args.trace_width < 1:
    parser.error("--trace-width must be above 0")
if args.room < 3:
    parser.error(f"--room ({args.room}) must be at least 3: two layers ahead and the one that is computed")

# --- set-up ------------------------------------------------------------------------------------------------------------
backend = os.environ.get("GPUCOURSE_BACKEND")
os.environ["GPUCOURSE_BACKEND"] = "gloo"  # what is recorded is the order of issue, which is the same on CPUs
torch.set_num_threads(1)
crew.start(args.ranks_per_node)  # from here on this process is one rank
timeline_part, prefetch_part = own_part.Process("my_timeline.py"), own_part.Process("my_prefetch.py")
world = ranks.join()
hosts = world.gather(bench.node_label())

# --- the experiment: the order in which torch issues a step, with real gathers and reduces --------------------------------
recorded, recorded_jobs, loss_off = {}, {}, 0.0
for name, way in ORDERS.items() if find_private_parts() else ():
    recorded[name], off = record(args.layers, world.size, world.rank, way)
    recorded_jobs[name] = recorded[name] if args.layers == LAYERS else record(LAYERS, world.size, world.rank, way)[0]
    loss_off = max(loss_off, *world.gather(off))
    say(f"rank {world.rank}: recorded {len(recorded[name])} issues, {name}")

# --- the clock: each recorded order, with the given times ------------------------------------------------------------------
source = random.Random(args.puzzle)
scales = [source.uniform(0.5, 2) if args.uneven else 1.0 for _ in range(args.layers)]
milliseconds = {GATHER: args.gather_ms, FORWARD: args.forward_ms, BACKWARD: 2 * args.forward_ms, REDUCE: args.reduce_ms}
seconds = {kind: [1e-3 * value * scale for scale in scales] for kind, value in milliseconds.items()}
settings = {"seconds": seconds, "issue_s": 1e-6 * args.issue_us}
steps = [
    {"issues": issues, "room": args.room if ORDERS[name][2] else args.layers, **settings} for name, issues in recorded.items()
]
timelines = [simulate_step(**step) for step in steps]
timing = timeline_part.run(world, "overlap_trial:time_steps", limit_s=30, steps=steps)
orders = [
    dict(zip(("ahead_forward", "ahead_backward", "frees"), ORDERS[name], strict=True)) | {"layers": args.layers}
    for name in recorded
]
ordering = prefetch_part.run(world, "overlap_trial:order_steps", limit_s=30, steps=orders)
gpus = find_gpus(world, backend)
traced = trace(gpus, args.layers, args.trace_width, ORDERS["torch's default"])
if world.rank > 0:
    dist.destroy_process_group()
    sys.exit()

# --- the record --------------------------------------------------------------------------------------------------------
rows, formulas = make_rows(recorded, timelines, timing, ordering), check_formulas()
outcomes = {"timeline": timing, "prefetch": ordering}
default = rows[0] if rows else None
choice = judge_choice(Path(__file__).resolve().parent / "my_overlap.yaml", recorded_jobs)
metrics = {
    **vars(args), "ranks": [{"rank": number, "host": host} for number, host in enumerate(hosts)], "recorded": rows,
    "loss_off": loss_off if rows else None, "formulas": formulas,
    "formula_off": max(abs(row["end"] - row["by_formula"]) for row in formulas),
    "forward_exposed_share": find_forward_share(recorded["torch's default"]) if rows else None,
    "default_exposed_percent": default and default["exposed_percent"],
    "yours": {"off_us": max((row["off_us"] for row in rows), default=None) if timing.state == "ran" else None,
              "orders_off": sum(not row["equal_to_yours"] for row in rows) if ordering.state == "ran" and rows else None},
    "choice": choice, "trace": traced, "traces": [traced] if gpus else [],
    "gathers_of_default": default and default["gathers"] + 1,  # and one for the head
    "errors": {name: "no error" if outcome.state == "ran" else outcome.text for name, outcome in outcomes.items()},
}  # fmt: skip
say(f"\nSteps of FSDP2 as torch issues them, with room for {args.room} layers (by the clock)")
titles = {
    "way": "order",
    "gathers": "gathers",
    "end_ms": "end ms",
    "exposed_ms": "exposed ms",
    "whole_at_once": "layers in memory",
}
bench.say_table(rows, titles | {"forward_exposed_ms": "exposed in forward"})
if not rows:
    say(f"torch {torch.__version__} has other private parts than the recorder knows: no order was recorded")
for name, outcome in outcomes.items():
    if outcome.state == "open":
        say(f"my_{name}.py is not written yet. {outcome.text}")
    elif outcome.state == "failed":
        say(f"my_{name}.py: {outcome.text}")
say(f"\n{choice['sentence']}")
path = bench.write_metrics("fsdp_overlap/1", find_device(gpus), world_size=size, seed=SEED, metrics=metrics)
bench.say_end(path, find_device(gpus))
dist.destroy_process_group()
