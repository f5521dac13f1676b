"""Job arrays: one script, one task for each value, and everything else the same, so that only the value can change the loss.

You will learn    what --array does; SLURM_ARRAY_TASK_ID; why the seed must be fixed; what a dependent job is for
You will produce  a file for each task with its losses and time; a table and a plot of all; the best value, if one stands out
Run it            gpucourse run 2.4                                                            (learning rates)
                  gpucourse run 2.4 --set sweep=batch_size --set values=16,32,64,128           (batch sizes)
                  python sweep.py --values=0.002                   (one value, by hand or for this task alone)
Your part         write the batch file itself: my_array.sbatch
Reading           modules/02-slurm/lesson-2-machines.md, "Arrays" and "Which value is best?"
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py is beside this file

import bench
import torch
from bench import say
from torch import nn

SAMPLES, HELD_OUT, BATCH = 4096, 1024, 32

# --- knobs ---------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="train one small model with this task's value, from several seeds")
parser.add_argument("--sweep", type=str, default="learning_rate", choices=["learning_rate", "batch_size"], help="what differs")
parser.add_argument("--values", type=str, default="0.001,0.002,0.003,0.004", help="one value, or one for each task")
parser.add_argument("--epochs", type=int, default=4, help="how often each sample is seen")
parser.add_argument("--seeds", type=int, default=3, help="how often each task trains, each time from a different seed")
parser.add_argument(
    "--budget", type=str, default="samples", choices=["samples", "steps"], help="what is the same for all tasks"
)
args = parser.parse_args()
task = int(os.environ.get("SLURM_ARRAY_TASK_ID", "0"))
try:
    listed = args.values.split(",")
    value = float(listed[0] if len(listed) == 1 else listed[task])
except (ValueError, IndexError):
    parser.error(f"--values {args.values}: there is no number for task {task}")
if value <= 0 or min(args.epochs, args.seeds) < 1 or (args.sweep == "batch_size" and not value.is_integer()):
    parser.error("learning rates are above 0, batch sizes whole numbers from 1, --epochs and --seeds at least 1")
learning_rate = value if args.sweep == "learning_rate" else 0.002
batch_size = int(value) if args.sweep == "batch_size" else BATCH
steps = args.epochs * math.ceil(SAMPLES / (batch_size if args.budget == "samples" else BATCH))

# --- set-up: the same samples for every task; each seed gives the same start and order of samples in every task ---------------
torch.manual_seed(0)
on_gpu = torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo"
device = torch.device("cuda" if on_gpu else "cpu")
torch.backends.cuda.matmul.allow_tf32 = False  # float32 means float32, on every GPU
points = torch.rand(SAMPLES + HELD_OUT, 2) * 4 - 2
targets = torch.sin(2 * points[:, :1]) * torch.cos(points[:, 1:]) + 0.05 * torch.randn(SAMPLES + HELD_OUT, 1)
points, targets = points.to(device), targets.to(device)


@torch.no_grad()
def held_out_loss(model: nn.Module) -> float:
    """Return the loss on samples that training never sees."""
    return nn.functional.mse_loss(model(points[SAMPLES:]), targets[SAMPLES:]).item()


def batches(order: torch.Generator) -> Iterator[torch.Tensor]:
    """Yield batches without end. Each epoch has every sample once, in a different order."""
    while True:
        yield from torch.randperm(SAMPLES, generator=order).to(device).split(batch_size)


def train(seed: int) -> tuple[float, float]:
    """Train one model. Return its loss before the first step and after the last."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    loss_before = held_out_loss(model)
    for batch in islice(batches(torch.Generator().manual_seed(seed)), steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(points[batch]), targets[batch]).backward()
        optimizer.step()
    loss_after = held_out_loss(model)
    say(f"task {task}: seed {seed}, loss {loss_before:.4f} before, {loss_after:.5f} after {steps} steps")
    return loss_before, loss_after


# --- the experiment -----------------------------------------------------------------------------------------------------------
node = os.environ.get("SLURMD_NODENAME") or bench.node_label()
say(f"task {task} on {node}: {args.sweep} {value:g}, {args.seeds} seeds")
start = time.perf_counter()
losses = [train(seed) for seed in range(args.seeds)]
seconds = time.perf_counter() - start
starts, ends = ([pair[place] for pair in losses] for place in (0, 1))
finite = all(math.isfinite(loss) for loss in ends)

# --- the record: one file for each task; gather.py reads them all -----------------------------------------------------
name = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{task}" if "SLURM_ARRAY_JOB_ID" in os.environ else "by-hand"
record = {
    "task": task, "sweep": args.sweep, "value": value, "learning_rate": learning_rate, "batch_size": batch_size,
    "steps": steps, "samples_seen": steps * batch_size, "seeds": args.seeds, "start_losses": starts,
    "start_loss": sum(starts) / len(starts), "final_losses": ends if finite else None,
    "final_loss": sum(ends) / len(ends) if finite else None, "low_loss": min(ends) if finite else None,
    "high_loss": max(ends) if finite else None, "seconds": seconds, "host": node,
    "tf32_allowed": torch.backends.cuda.matmul.allow_tf32, "device": bench.environment(device)["device"],
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
(out / f"job-{name}.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
say(f"task {task}: {args.seeds} seeds in {seconds:.2f} s; written: job-{name}.json")
