"""Pipelines whose backward pass has two pieces: on real ranks, and by a clock that knows the time of each piece.

You will learn    which half of a backward pass fills a pipeline's gaps; what smaller bubbles cost
You will produce  orders that run on real ranks with the gradients of one process; seven schedules on one clock; a choice
Run it            python pipelines.py --ranks-per-node=4 --layers=8 --width=64                          (four ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           pipelines.py --ranks-per-node=2     (on the first node, --node-rank=1 on the second)
Your part         predict the bubble of ZB-V; then my_order.py, my_split.py and my_pipeline.yaml
Reading           modules/09-frontier-training/lesson-5-pipelines.md
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
import own_part
import ranks
import torch
import torch.distributed as dist
from bench import say
from pieces import Piece, Times
from pipeline_choice import PUZZLES, Job, list_rows, make_job
from pipeline_report import add_formulas, describe_job, draw_timelines, judge_choice, list_steps, summarize_order
from schedules import order_1f1b, order_gpipe, order_interleaved
from split_pipeline import SEED, Shape, measure

PIPELINES = ((4, 8), (3, 5), (2, 4), (1, 3), (4, 4), (5, 11), (8, 16), (3, 3))  # stages and micro-batches of your orders
STEPS = 3

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="pipelines whose backward pass has two pieces")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 on macOS and with GPUs")
parser.add_argument("--micro-batches", type=int, default=16, help="micro-batches of a step, at least one for each stage")
parser.add_argument("--layers", type=int, default=32, help="layers of the real model, a multiple of twice the ranks")
parser.add_argument("--width", type=int, default=512, help="width of the real model")
parser.add_argument("--stages", type=int, default=8, help="ranks of the pipelines on the simulated clock, an even number")
parser.add_argument("--forward", type=int, default=10, help="time of a micro-batch forward on the simulated clock")
parser.add_argument("--inputs", type=int, default=12, help="time of the gradient of its inputs")
parser.add_argument("--weights", type=int, default=8, help="time of the gradients of the weights")
parser.add_argument("--puzzle", type=int, default=1, help="the job that the run prints, for my_pipeline.yaml")
args = parser.parse_args()
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
if min(args.ranks_per_node, args.layers, args.width, args.forward, args.inputs, args.weights) < 1:
    parser.error("every number must be at least 1")
if size < 2:
    parser.error("a pipeline needs two ranks: take two nodes (deploy 9 --nodes 2), or --ranks-per-node=2")
if args.layers % (2 * size):
    parser.error(f"--layers ({args.layers}) must be a multiple of twice the number of ranks, {2 * size}")
if args.stages < 2 or args.stages % 2:
    parser.error(f"--stages ({args.stages}) must be an even number, at least 2")
if args.micro_batches < max(size, args.stages) or args.micro_batches % size or args.micro_batches % args.stages:
    parser.error(
        f"--micro-batches ({args.micro_batches}) must be a multiple of --stages ({args.stages}) and of the ranks, {size}"
    )
if not 1 <= args.puzzle <= PUZZLES:
    parser.error(f"--puzzle must be from 1 to {PUZZLES}")

# --- set-up ------------------------------------------------------------------------------------------------------------
os.environ["GPUCOURSE_BACKEND"] = "gloo"  # the compared results are computed on CPUs, in float64
torch.set_num_threads(1)
crew.start(args.ranks_per_node)  # from here on this process is one rank
order_part, split_part = own_part.Process("my_order.py"), own_part.Process("my_split.py")
world = ranks.join()
shape = Shape(args.layers, args.width, args.micro_batches)
sizes = [args.layers, args.width, args.micro_batches]

# --- the experiment: schedules with a whole backward pass on real ranks, then yours --------------------------------------
hosts = world.gather(bench.node_label())
schedules = {
    ("gpipe", size): order_gpipe(size, args.micro_batches),
    ("1f1b", size): order_1f1b(size, args.micro_batches),
    ("interleaved", 2 * size): order_interleaved(size, args.micro_batches, 2),
}
real = []
for (name, stages), slots in schedules.items():
    real.append(measure(world, shape, name, slots, stages, STEPS))
    say(f"rank {world.rank}: {name} takes {real[-1]['median_ms']:.0f} ms")
order = order_part.run(world, "split_pipeline:run_your_order", limit_s=40, shape=sizes, steps=STEPS,
                       clocks=[[args.stages, args.micro_batches], [4, 8]], pipelines=PIPELINES)  # fmt: skip
own_orders = order.results[0]["orders"] if order.state == "ran" else []
split = split_part.run(world, "split_pipeline:run_your_split", limit_s=40, shape=sizes, steps=STEPS, orders=own_orders)
if world.rank > 0:
    dist.destroy_process_group()
    sys.exit()

# --- the record: the clock needs no rank ---------------------------------------------------------------------------------
job = Job(
    args.stages, args.micro_batches, 4 * args.stages, Times(args.forward, args.inputs, args.weights), memory=args.micro_batches
)
outcomes, of_clock, of_timeline = {"order": order, "split": split}, None, None
if order.state == "ran":
    real.append(order.results[0]["row"])
    of_clock, of_timeline = ([[tuple(Piece(*piece) for piece in slot) for slot in row] for row in orders]
                             for orders in order.results[0]["clocks"])  # fmt: skip
if split.state == "ran":
    real += split.results[0]["rows"]
clock = list_rows(job, of_clock)
by_label = {row["label"]: row for row in clock}
steps = list_steps(job, of_clock)
choice = judge_choice(Path("my_pipeline.yaml"))
delivered = add_formulas(real, size, args.micro_batches)[: len(schedules)]
yours: dict[str, Any] = {"order": summarize_order(job, by_label.get("yours"), order), "choice": choice}
yours["split"] = {key: max(row[key] for row in split.results[0]["rows"]) if split.state == "ran" else None
                  for key in ("loss_off", "gradients_off", "weights_early", "products")}  # fmt: skip
metrics = {
    **vars(args), "ranks": [{"rank": number, "host": host} for number, host in enumerate(hosts)], "real": real, "clock": clock,
    "steps": steps, "yours": yours,
    "loss_off": max(row["loss_off"] for row in delivered), "gradients_off": max(row["gradients_off"] for row in delivered),
    # GPipe takes new memory for each forward, so its pieces are not equal, as the formula wants them.
    "bubble_off_points": max(abs(row["bubble_replayed_percent"] - row["bubble_by_formula_percent"])
                             for row in delivered if row["schedule"] != "gpipe"),
    "formula_off": max(abs(by_label[name]["bubble"] - by_label[name]["by_formula"])
                       for name in ("gpipe", "1f1b", "interleaved, 2 stages", "interleaved, 4 stages")),
    "zbv_bubble_share": by_label["zb-v"]["bubble"] / by_label["1f1b"]["bubble"],
    "end_of_four_zbv": next(row["end"] for row in steps if (row["schedule"], row["steps"]) == ("zb-v", 4)),
    "end_of_1f1b": by_label["1f1b"]["end"], "held_by_interleaved": by_label["interleaved, 2 stages"]["held"],
    "errors": {name: "no error" if outcome.state == "ran" else outcome.text for name, outcome in outcomes.items()},
}  # fmt: skip
say(f"\n{args.micro_batches} micro-batches on {size} ranks, with the gradients of one process")
titles = {"schedule": "schedule", "gradients_off": "off", "in_flight": "held", "products": "products"}
bench.say_table(
    real, titles | {"bubble_replayed_percent": "bubble %", "bubble_by_formula_percent": "formula", "median_ms": "ms"}
)
say(f"\nOn the clock: {args.stages} ranks, a micro-batch takes {args.forward}, {args.inputs} and {args.weights}")
titles = {"label": "schedule", "end": "end", "bubble": "bubble", "by_formula": "formula", "held": "held"}
bench.say_table(clock, titles | {"messages_times": "messages", "further_step": "further step"})
say(f"\nPuzzle {args.puzzle}: {describe_job(make_job(args.puzzle))}")
for name, outcome in outcomes.items():
    if outcome.state == "open":
        say(f"my_{name}.py is not written yet: a row of yours would follow. {outcome.text}")
    elif outcome.state == "failed":
        say(f"my_{name}.py: {outcome.text}")
path = bench.write_metrics("pipelines/1", world.device, world_size=size, seed=SEED, metrics=metrics)
(path.parent / "timeline.txt").write_text(draw_timelines(of_timeline), encoding="utf-8")
bench.say_end(path, world.device)
dist.destroy_process_group()
