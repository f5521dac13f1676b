"""A plan for a large model: formulas compare it with all valid plans, and its form is trained for real on these ranks.

You will learn    what limits training at scale (memory, a link, the bubble), and how to find out before renting a GPU
You will produce  a plan with reasons; its memory, bytes and minimum time; proof that its form trains as one process does
Run it            python training_plan.py --ranks-per-node=4 --layers=4 --width=64 --length=32 --batch-size=16 --steps=5
                  torchrun --nproc-per-node=4 training_plan.py      (four GPUs)
Your part         fill in the empty values of my_plan.yaml; gpucourse try 6.6 judges it
Reading           modules/06-training-at-scale/lesson-10-plan.md, lesson-11-steps.md
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import crew
import plan_run
import ranks
import torch
import torch.distributed as dist
import yaml
from bench import say
from layouts import train_alone
from mesh_model import VOCABULARY, Layout, Shape
from plan_file import read_plan
from plan_report import (
    OPEN_PLAN,
    describe_plan,
    describe_work,
    list_alternatives,
    list_bars,
    list_sentences,
    read_earlier,
    shrink,
)
from plans import Plan, list_valid_plans
from targets import CLUSTERS, TARGETS, work_of
from targets import Shape as ModelShape

SEED, HEADS, NO_FAULT = 0, 8, "no fault"
HERE = Path(__file__).resolve().parent

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a plan for training a large model, and its form on these ranks")
parser.add_argument(
    "--target",
    type=str,
    default="planned",
    choices=["planned", *TARGETS],
    help="the model; planned takes the model in my_plan.yaml",
)
parser.add_argument(
    "--cluster",
    type=str,
    default="planned",
    choices=["planned", *CLUSTERS],
    help="the GPUs; planned takes the cluster in my_plan.yaml",
)
parser.add_argument(
    "--puzzle", type=int, default=0, help="which sequence length and batch to plan for; 0 takes those in my_plan.yaml"
)
parser.add_argument(
    "--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 if there are GPUs, and on macOS"
)
parser.add_argument("--layers", type=int, default=12, help="layers of the small model that is really trained")
parser.add_argument(
    "--width", type=int, default=1024, help="width of the small model; a multiple of 8, the number of its heads"
)
parser.add_argument("--length", type=int, default=256, help="tokens in each sequence of the small model")
parser.add_argument("--batch-size", type=int, default=32, help="sequences in one step of the small model, over all ranks")
parser.add_argument("--steps", type=int, default=20, help="training steps of the small model; the first two are not timed")
args = parser.parse_args()
if min(args.ranks_per_node, args.layers, args.width, args.length, args.batch_size) < 1 or args.steps < 3 or args.puzzle < 0:
    parser.error("--puzzle must be at least 0, --steps at least 3, and all other numbers at least 1")
if args.width % HEADS:
    parser.error(f"--width must be a multiple of {HEADS}, the heads of the small model")

crew.start(args.ranks_per_node)
torch.set_num_threads(1)
world = ranks.join()
if world.size == 1:
    dist.destroy_process_group()
    sys.exit("one rank has nothing to divide: take two nodes (gpucourse deploy 6 --nodes 2), or --ranks-per-node=4 on CPUs")

# --- the plan on paper -----------------------------------------------------------------------------------------------------
try:
    file = read_plan(yaml.safe_load((HERE / "my_plan.yaml").read_text(encoding="utf-8")))
    fault = file.faults[0] if file.faults else NO_FAULT
except (yaml.YAMLError, UnicodeDecodeError) as error:
    file, fault = read_plan({}), " ".join(str(error).split())
settings = {"target": args.target, "cluster": args.cluster, "puzzle": args.puzzle}
named = {key: file.values.get(key, first) for key, first in (("target", "1.3b"), ("cluster", "4xl4"), ("puzzle", 1))}
choices = {key: named[key] if value in ("planned", 0) else value for key, value in settings.items()}
work, plan = work_of(**choices), file.plan
valid = list_valid_plans(work, plan)
described, paper = describe_work(work, valid), describe_plan(work, plan, valid) if plan else None
alternatives = list_alternatives(work, valid, plan, is_shown=bool(paper and paper["better_half"]))
earlier = read_earlier(HERE)
if world.rank == 0:
    for line in list_sentences(described, paper, alternatives, earlier):
        say(line)
    if fault != NO_FAULT:
        say(f"my_plan.yaml cannot be used: {fault}")
    elif plan is None:
        say(f"my_plan.yaml still has empty values: {', '.join(file.empty)}. The small model is trained as plain copies")

# --- its form on the ranks here --------------------------------------------------------------------------------------------
form = plan or Plan(world.size, 1, 1, 0, "none", 1, "fp32")


def make_shape(micro_batches: int) -> Shape:
    return Shape(args.layers, args.width, HEADS, args.length, args.batch_size, micro_batches, args.steps, seed=SEED)


def can_run(dp: int, pp: int, tp: int, micro_batches: int) -> bool:
    return make_shape(micro_batches).find_problem(Layout(dp, pp, tp)) is None


hosts = world.gather(bench.node_label())
per_node = min(hosts.count(host) for host in hosts)
small = shrink(form, world.size, per_node, args.batch_size, can_run)
if small is None:
    dist.destroy_process_group()
    sys.exit(f"{world.size} ranks cannot divide this model: --batch-size ({args.batch_size}) must be a multiple of dp, "
             f"and --layers ({args.layers}) at least pp")  # fmt: skip
model = ModelShape("small", args.layers, args.width, HEADS, HEADS, 4 * args.width, VOCABULARY, False, "")
flops = model.model_flops(args.batch_size * args.length, args.length)
alone = train_alone(world, make_shape(small.micro_batches))
run = plan_run.run_plan(world, small, make_shape(small.micro_batches), alone, flops)
run["form"] = "your plan" if plan else "as delivered"
runs, copies = [run], Plan(world.size, 1, 1, 0, "none", 1, "fp32")
if plan and can_run(copies.dp, copies.pp, copies.tp, copies.micro_batches):
    runs.insert(0, {"form": "plain copies", **plan_run.run_plan(world, copies, make_shape(1), alone, flops)})

# --- the record ------------------------------------------------------------------------------------------------------------
if world.rank == 0:
    metrics = {
        "work": described, "puzzle": choices["puzzle"], "plan_fault": fault, "plan": paper or OPEN_PLAN, "run": run,
        "losses": [row.pop("losses") for row in runs][-1],
        "problem_count": None if paper is None else len(paper["problems"]),
        "reasons_words": len(file.words) if "reasons" in file.values else None,
        "alternatives": alternatives, "bars": list_bars(work, plan), "runs": runs, "earlier": earlier,
        "nodes": len(set(hosts)), "ranks": [{"rank": rank, "node": host} for rank, host in enumerate(hosts)],
    }  # fmt: skip
    say(f"trained as {run['layout']}: losses off by {run['loss_off']:.1e}, {run['tokens_per_s']:,.0f} tokens/s")
    path = bench.write_metrics("training_plan/1", world.device, world_size=world.size, seed=SEED, metrics=metrics)
    if path.parent.resolve() != HERE:
        shutil.copyfile(HERE / "my_plan.yaml", path.parent / "my_plan.yaml")  # the judged file, kept with the figures
    bench.say_end(path, world.device)
dist.destroy_process_group()
