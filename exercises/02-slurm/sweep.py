"""Job arrays: one script, one task a value, all else the same, so that a difference in the loss has one cause.

You will learn    what --array does; SLURM_ARRAY_TASK_ID; why the seed must be fixed; what a dependent job is for
You will produce  one file a task with its loss and time; a table and a plot of all of them; the best value
Run it            gpucourse run 2.4                                                            (learning rates)
                  gpucourse run 2.4 --set sweep=batch_size --set values=16,32,64,128           (batch sizes)
                  python sweep.py --values=0.002                                               (one value, by hand)
Your part         find a learning rate at which the loss no longer falls, and a batch size that is too large to be quick
Reading           modules/02-slurm/lesson.md, "Arrays"
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py lies beside

import bench
import torch
from bench import say
from torch import nn

SEED, SAMPLES, HELD_OUT = 0, 4096, 1024

# --- knobs ---------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="train one small model with this task's value")
parser.add_argument("--sweep", type=str, default="learning_rate", choices=["learning_rate", "batch_size"], help="what differs")
parser.add_argument("--values", type=str, default="0.001,0.002,0.003,0.004", help="one value a task, parted by commas")
parser.add_argument("--epochs", type=int, default=4, help="how often each sample is seen")
args = parser.parse_args()
task = int(os.environ.get("SLURM_ARRAY_TASK_ID", "0"))
try:
    value = float(args.values.split(",")[task])
except (ValueError, IndexError):
    parser.error(f"--values {args.values}: there is no number for task {task}")
if value <= 0 or args.epochs < 1 or (args.sweep == "batch_size" and not value.is_integer()):
    parser.error("learning rates are above 0, batch sizes whole numbers from 1, --epochs at least 1")
learning_rate = value if args.sweep == "learning_rate" else 0.002
batch_size = int(value) if args.sweep == "batch_size" else 32

# --- set-up: the same start and the same samples in the same order for every task --------------------------------------------
torch.manual_seed(SEED)
on_gpu = torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo"
device = torch.device("cuda" if on_gpu else "cpu")
points = torch.rand(SAMPLES + HELD_OUT, 2) * 4 - 2
wanted = torch.sin(2 * points[:, :1]) * torch.cos(points[:, 1:]) + 0.05 * torch.randn(SAMPLES + HELD_OUT, 1)
points, wanted = points.to(device), wanted.to(device)
model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
order = torch.Generator().manual_seed(SEED)


@torch.no_grad()
def held_out_loss() -> float:
    """The loss on samples that were never trained on."""
    return nn.functional.mse_loss(model(points[SAMPLES:]), wanted[SAMPLES:]).item()


# --- the experiment -----------------------------------------------------------------------------------------------------------
node = os.environ.get("SLURMD_NODENAME") or bench.node_label()
start_loss = held_out_loss()
say(f"task {task} on {node}: {args.sweep} {value:g}, loss {start_loss:.4f} before the first step")
began, steps = time.perf_counter(), 0
for epoch in range(args.epochs):
    for batch in torch.randperm(SAMPLES, generator=order).to(device).split(batch_size):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(points[batch]), wanted[batch]).backward()
        optimizer.step()
        steps += 1
    say(f"task {task}: epoch {epoch + 1} of {args.epochs}, loss {held_out_loss():.4f}")
seconds = time.perf_counter() - began
final_loss = held_out_loss()

# --- the record: one file a task; gather.py reads them all ------------------------------------------------------------
name = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{task}" if "SLURM_ARRAY_JOB_ID" in os.environ else "by-hand"
record = {
    "task": task, "sweep": args.sweep, "value": value, "learning_rate": learning_rate, "batch_size": batch_size,
    "steps": steps, "epochs": args.epochs, "seed": SEED, "start_loss": start_loss,
    "final_loss": final_loss if math.isfinite(final_loss) else None, "seconds": seconds, "host": node,
    "device": bench.environment(device)["device"],
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
(out / f"job-{name}.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
say(f"task {task}: loss {final_loss:.5f} after {steps} steps in {seconds:.2f} s; written: job-{name}.json")
