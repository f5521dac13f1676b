"""The job after the array: it starts once every task has ended well, reads what each left, and says which value is best.

Run it            sbatch --dependency=afterok:NUMBER gather.sbatch     (NUMBER is the array's; gpucourse run 2.4 does it)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py lies beside

import bench
import torch
from bench import say

parser = argparse.ArgumentParser(description="one table of what all tasks found")
parser.add_argument("--sweep", type=str, default="learning_rate", help="what differs between the tasks")
parser.add_argument("--values", type=str, default="0.001,0.002,0.003,0.004", help="the values that were tried")
parser.add_argument("--epochs", type=int, default=4, help="how often each sample was seen")
args = parser.parse_args()

out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
rows = sorted((json.loads(path.read_text()) for path in out.glob("job-*_*.json")), key=lambda row: row["task"])
good = [row for row in rows if row["final_loss"] is not None]
if not good:
    sys.exit(f"no task left a loss in {out}: did all of them diverge?")
best = min(good, key=lambda row: row["final_loss"])
for row in rows:
    row["best"] = "best" if row is best else ""

titles = {
    "task": "task",
    "value": args.sweep,
    "final_loss": "final loss",
    "seconds": "seconds",
    "steps": "steps",
    "host": "node",
}
titles["best"] = ""
say(bench.table(rows, titles) + "\n")
say(f"best {args.sweep}: {best['value']:g}, with a loss of {best['final_loss']:.5f}")
metrics = {
    "sweep": args.sweep, "rows": rows, "values_tried": len(args.values.split(",")), "best_value": best["value"],
    "best_loss": best["final_loss"], "diverged": len(rows) - len(good), "seeds": len({row["seed"] for row in rows}),
    "starts": len({round(row["start_loss"], 4) for row in rows}),
}  # fmt: skip
path = bench.write_metrics("sweep/1", torch.device("cpu"), world_size=1, seed=rows[0]["seed"], metrics=metrics)
say(f"written: {path}")
