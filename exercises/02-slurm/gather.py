"""The job after the array: it starts when all tasks have succeeded, reads their results, and prints which value is best.

Run it            gpucourse run 2.4                                (submits it after the array)
                  python work/gather.py --print-only               (in a job of your own: it writes no results)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py is beside this file

import bench
import torch
from bench import say

parser = argparse.ArgumentParser(description="one table of the results of all tasks")
parser.add_argument("--sweep", type=str, default="learning_rate", help="what differs between the tasks")
parser.add_argument("--values", type=str, default="0.001,0.002,0.003,0.004", help="the values that were tried")
parser.add_argument("--epochs", type=int, default=4, help="how often each sample was seen")
parser.add_argument("--seeds", type=int, default=3, help="how often each task trained")
parser.add_argument("--budget", type=str, default="samples", help="what was the same for all tasks")
parser.add_argument("--print-only", action="store_true", help="print the table, and write nothing")
args = parser.parse_args()

out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
rows = sorted((json.loads(path.read_text()) for path in out.glob("job-*_*.json")), key=lambda row: row["task"])
finite_rows = [row for row in rows if row["final_loss"] is not None]
if not finite_rows:
    sys.exit(f"no task left a loss in {out}: did all of them diverge?")
best = min(finite_rows, key=lambda row: row["final_loss"])
# With other seeds the losses differ. If the ranges of two values overlap, the seeds alone may explain the difference.
equal = [row for row in finite_rows if row is not best and row["low_loss"] <= best["high_loss"]]
for row in rows:
    row["best"] = ("" if equal else "best") if row is best else ""
    if equal and (row is best or row in equal):
        row["best"] = "not told apart"

titles = {"task": "task", "value": args.sweep, "final_loss": "mean loss", "low_loss": "lowest", "high_loss": "highest"}
titles |= {"seconds": "seconds", "steps": "steps", "samples_seen": "samples", "host": "node", "best": ""}
bench.say_table(rows, titles)
smallest = f"{args.sweep} {best['value']:g} has the smallest mean loss, {best['final_loss']:.5f}"
if equal:
    values_text = ", ".join(f"{row['value']:g}" for row in equal)
    say(f"{smallest}; its {best['low_loss']:.5f} to {best['high_loss']:.5f} overlaps with {values_text}")
    say("with these seeds, no value is best: another seed could reverse the order")
else:
    say(f"best {smallest}: its highest loss is below the lowest of every other value")
if args.print_only:
    sys.exit()
submissions = [row for row in rows if "gather_waits" in row]
lowest_row, *_, highest_row = sorted(rows, key=lambda row: row["value"]) if len(rows) > 1 else (rows * 2)
both = lowest_row["final_loss"] and highest_row["final_loss"]
metrics = {
    "sweep": args.sweep, "rows": rows, "values_tried": len(args.values.split(",")), "best_value": best["value"],
    "loss_ratio": highest_row["final_loss"] / lowest_row["final_loss"] if both else None,
    "best_loss": best["final_loss"], "not_told_apart": len(equal), "diverged": len(rows) - len(finite_rows),
    "gather_waits": min(row["gather_waits"] for row in submissions) if submissions else None,
    "gather_jobs": len(submissions) or None,
    "seeds": len({row["seeds"] for row in rows}),
    "starts": len({tuple(round(loss, 4) for loss in row["start_losses"]) for row in rows}),
}  # fmt: skip
path = bench.write_metrics("sweep/2", torch.device("cpu"), world_size=1, seed=0, metrics=metrics)
bench.say_end(path, torch.device("cpu"))
