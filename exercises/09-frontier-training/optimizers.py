"""Muon: a gradient with equal singular values, whole matrices on ranks, and a learning rate that stays as the model gets wider.

You will learn    what Muon does to a gradient, what that costs, and which settings depend on the width
You will produce  singular values after each iteration; work, momentum and traffic of each rank; the best rate by width
Run it            python optimizers.py --ranks-per-node=2                                              (two ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           optimizers.py --ranks-per-node=2        (on the first node, --node-rank=1 on the second)
Your part         predict what the iterations cost; then my_orthogonal.py, my_muon.py and my_widths.py
Reading           modules/09-frontier-training/lesson-8-muon.md
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
import muon_trial
import own_part
import ranks
import torch
import torch._dynamo  # torch's Muon imports it, which takes seconds: here it is imported once for all ranks
import torch.distributed as dist
import widths
from bench import say
from gpu_times import find_gpus, measure_iterations

ROWS, COLUMNS = 128, 64  # of the matrix whose singular values are shown
GPU_TOKENS = 8192  # of the step that a GPU times

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="Muon in shares, and learning rates by width")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 on macOS and with GPUs")
parser.add_argument("--layers", type=int, default=4, help="layers of the divided model")
parser.add_argument("--width", type=int, default=256, help="width of that model")
parser.add_argument("--steps", type=int, default=4, help="steps of its training")
parser.add_argument("--plan", choices=("quintic", "hybrid", "cubic"), default="quintic", help="coefficients of the iterations")
parser.add_argument("--iterations", type=int, default=5, help="iterations of quintic and cubic; hybrid has ten")
parser.add_argument("--step-width", type=int, default=4096, help="width of the square matrix whose costs are counted")
parser.add_argument("--step-tokens", type=int, default=1048576, help="tokens of a step, for the same costs")
parser.add_argument("--widths", default="32,64,128", help="widths of the sweep, rising, as numbers with commas")
parser.add_argument("--rates", default="-10,-9,-8,-7,-6", help="learning rates of the sweep, as powers of 2")
parser.add_argument("--sweep-steps", type=int, default=48, help="steps of each training run of the sweep")
args = parser.parse_args()
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
if min(args.ranks_per_node, args.layers, args.steps, args.iterations, args.step_width, args.step_tokens) < 1 or args.width < 8:
    parser.error("all numbers must be at least 1, and --width at least 8")
if size < 2:
    parser.error("one rank has nothing to share: take two nodes (deploy 9 --nodes 2), or --ranks-per-node=2 on CPUs")
try:
    sweep_widths, rates = ([int(word) for word in text.split(",")] for text in (args.widths, args.rates))
except ValueError:
    parser.error(f"--widths ({args.widths}) and --rates ({args.rates}) are whole numbers with commas between them")
if len(sweep_widths) < 2 or sorted({*sweep_widths}) != sweep_widths or not 8 <= sweep_widths[0] <= sweep_widths[-1] <= 2048:
    parser.error(f"--widths ({args.widths}) must be at least two numbers from 8 to 2048, each larger than the one before")
if not all(-30 <= rate <= 0 for rate in rates) or len({*rates}) < 2 or len(rates) * len(sweep_widths) > 100:
    parser.error(f"--rates ({args.rates}) must be two different powers or more, from -30 to 0, and at most 100 trainings")
if args.sweep_steps < widths.CHECK_STEPS:
    parser.error(f"--sweep-steps must be at least {widths.CHECK_STEPS}")

# --- set-up ------------------------------------------------------------------------------------------------------------
backend = os.environ.get("GPUCOURSE_BACKEND")
crew.start(args.ranks_per_node)  # from here on this process is one rank
orthogonal_part, muon_part = own_part.Process("my_orthogonal.py"), own_part.Process("my_muon.py")
widths_part = own_part.Process("my_widths.py", backend="gloo")
world = ranks.join()
torch.set_num_threads(1)
torch.backends.cuda.matmul.allow_tf32 = False
plan = muon_trial.make_plan(args.plan, args.iterations)
hybrid = muon_trial.make_plan("hybrid", args.iterations)
training: dict[str, Any] = {"layers": args.layers, "width": args.width, "steps": args.steps, "plan": plan}
sweep: dict[str, Any] = {"widths": sweep_widths, "rates": rates, "steps": args.sweep_steps}


def describe(label: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of one training run from the results of all ranks."""
    works, kept = [result["work"] for result in results], sum(result["kept_numbers"] for result in results)
    return {
        "label": label, "off": max(result["off"] for result in results), "works": works, "max_work": max(works),
        "imbalance_percent": 100 * (max(works) / mean_work - 1), "kept_numbers": [result["kept_numbers"] for result in results],
        "kept_times": kept / numbers, "sent_numbers": max(result["sent_numbers"] for result in results),
    }  # fmt: skip


def join_rows(results: list[list[dict[str, Any]]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the checks of all ranks, and the rows of the sweep, by width and rate."""
    rows = [row for result in results for row in result]
    checks = sorted((row for row in rows if row["rate"] is None), key=lambda row: row["width"])
    return checks, sorted((row for row in rows if row["rate"] is not None), key=lambda row: (row["width"], row["rate"]))


# --- the experiment ----------------------------------------------------------------------------------------------------
hosts = world.gather(bench.node_label())
hidden = [s for name, s in muon_trial.list_shapes(args.layers, args.width).items() if muon_trial.is_hidden(name, s)]
numbers = sum(rows * columns for rows, columns in hidden)
dealt, mean_work = muon_trial.find_loads(args.layers, args.width, size)
trainings = [describe("all matrices on every rank", world.gather(muon_trial.train_on_every_rank(world, **training)))]
checks, swept = join_rows(world.gather(widths.measure(world, widths.keep_standard, **sweep)))
outcomes = {
    "orthogonal": orthogonal_part.run(
        world, "muon_trial:measure_orthogonal", limit_s=30, rows=ROWS, columns=COLUMNS, plan=plan, hybrid=muon_trial.HYBRID
    )
}
iteration = outcomes["orthogonal"].results[0] if outcomes["orthogonal"].state == "ran" else None
with_yours = iteration is not None and iteration["off"] <= 1e-10
outcomes["muon"] = muon_part.run(world, "muon_trial:train_yours", limit_s=60, **training, with_yours=with_yours)
outcomes["widths"] = widths_part.run(world, "widths:measure_yours", limit_s=120, **sweep)
gpus = find_gpus(world, backend)
gpu_times = measure_iterations(gpus, muon_trial.iterate_as_torch, muon_trial.TORCH_ITERATIONS, args.step_width, GPU_TOKENS)
if world.rank > 0:
    dist.destroy_process_group()
    sys.exit()

# --- the record --------------------------------------------------------------------------------------------------------
matrix = muon_trial.draw_matrix(ROWS, COLUMNS)
iterations = muon_trial.list_iterations(matrix, plan)
by_formula = args.iterations * muon_trial.count_flops(args.step_width, args.step_width)
counted = muon_trial.count_torch_flops(args.step_width, args.iterations)
step_flops = muon_trial.count_step_flops(args.step_width, args.step_tokens)
added_percent = 100 * counted / step_flops
yours: dict[str, Any] = {"orthogonal": dict.fromkeys(("off", "flops", "hybrid_off")), "muon": {}, "widths": {}}
yours["muon"] = dict.fromkeys(("off", "kept_times", "sent_numbers", "max_work", "imbalance_percent"))
if iteration:
    yours["orthogonal"] = iteration
if outcomes["muon"].state == "ran":
    trainings.append(describe("yours", outcomes["muon"].results))
    yours["muon"] = trainings[1]
standard_best = widths.find_best(swept)
for row in [*checks, *swept]:
    row["who"] = "standard"
yours["widths"] = dict.fromkeys(("slope", "rate_moves"))
if outcomes["widths"].state == "ran":
    your_checks, your_rows = join_rows(outcomes["widths"].results)
    best = widths.find_best(your_rows)
    for row in [*your_checks, *your_rows]:
        row["who"] = "yours"
    yours["widths"] = {"slope": widths.find_slope(your_checks), "best": best}
    moved = [abs(rate - best[sweep_widths[0]]) for rate in best.values()] if len(best) == len(sweep_widths) else None
    yours["widths"]["rate_moves"] = max(moved) if moved else len(rates)
    checks, swept = checks + your_checks, swept + your_rows
bests = [{"who": "standard", "width": width, "rate": rate} for width, rate in standard_best.items()]
bests += [{"who": "yours", "width": width, "rate": rate} for width, rate in yours["widths"].get("best", {}).items()]
loads = [{"rank": rank, "who": "dealt in turn", "times_mean": work / mean_work} for rank, work in enumerate(dealt)]
loads += [{"rank": rank, "who": "yours", "times_mean": work / mean_work} for rank, work in enumerate(trainings[-1]["works"])
          if len(trainings) == 2]  # fmt: skip
all_reduce_numbers = 2 * (size - 1) / size * numbers
label = "{who}, width {width}".format
metrics = {
    **vars(args), "ranks": [{"rank": number, "host": host} for number, host in enumerate(hosts)], "iterations_done": iterations,
    "least": iterations[-1]["least"], "largest": iterations[-1]["largest"], "hybrid_iterations": len(hybrid),
    "hybrid_off": muon_trial.find_hybrid_off(), "trainings": trainings, "every_rank_off": trainings[0]["off"],
    "numbers": numbers, "all_reduce_numbers": all_reduce_numbers, "loads": loads,
    "send_limit_numbers": 1.3 * all_reduce_numbers,  # shares may be padded
    "max_load": muon_trial.find_max_load(args.layers, args.width, size),
    "flops": {"counted": counted, "by_formula": by_formula, "of_step": step_flops, "of_a_step_percent": added_percent},
    "flops_off": abs(counted - by_formula), "flops_limit": len(plan) * muon_trial.count_flops(ROWS, COLUMNS),
    "checks": checks, "standard_slope": widths.find_slope([row for row in checks if row["who"] == "standard"]),
    "sweep": [row | {"label": label(**row), "rate_value": 2.0 ** row["rate"]} for row in swept], "best": bests,
    "standard_rate_moves": max(abs(rate - standard_best[sweep_widths[0]]) for rate in standard_best.values()),
    "errors": {name: "no error" if outcome.state == "ran" else outcome.text for name, outcome in outcomes.items()},
    "yours": yours, "gpu": gpu_times, "gpus": [gpu_times] if gpus else [],
    "bf16_off": muon_trial.find_bf16_off(gpus.device) if gpus else None,
}  # fmt: skip
say(f"\nSingular values of a {ROWS} x {COLUMNS} matrix, divided by its norm, after each iteration ({args.plan})")
bench.say_table(iterations, {"step": "iteration", "least": "least", "largest": "largest", "share_near_one": "0.7 to 1.2"})
say(f"\n{args.steps} steps of {len(hidden)} matrices on {size} ranks, compared with one process")
titles = {"label": "training", "off": "off", "max_work": "FLOPs of the busiest", "kept_times": "momentum kept (1 = once)"}
bench.say_table(trainings, titles | {"sent_numbers": "numbers sent a step"})
say("\nThe learning rate with the least loss, as a power of 2")
bench.say_table(bests, {"who": "settings", "width": "width", "rate": "best rate"})
for name, outcome in outcomes.items():
    if outcome.state == "open":
        say(f"my_{name}.py is not written yet: a row of yours would follow. {outcome.text}")
    elif outcome.state == "failed":
        say(f"my_{name}.py: {outcome.text}")
bench.keep_files(__file__, "my_orthogonal.py", "my_muon.py", "my_widths.py")
path = bench.write_metrics("optimizers/1", world.device, world_size=size, seed=0, metrics=metrics)
bench.say_end(path, world.device)
dist.destroy_process_group()
