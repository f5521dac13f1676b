"""First job: the variables that Slurm sets for a batch job, and proof that the job shares its GPU with no other.

You will learn    what sbatch, squeue and scancel do; which variables a job finds; why it waits, and for how long
You will produce  one line about where the job runs, and a matrix product timed there; job-NUMBER.json, product-ms-NUMBER.txt
Run it            gpucourse run 2.1                      (one job)
                  gpucourse run 2.1 --set jobs=5         (five together: some of them wait)
                  sbatch job.sbatch                      (by hand: the file is in the folder of each run)
Your part         write the batch file itself: my_job.sbatch
Reading           modules/02-slurm/lesson.md, "One job, then five" and "A job that follows another"
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py is beside this file

import bench
import torch
from bench import say

# --- knobs ---------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="print where this job runs, and compute for a while")
parser.add_argument("--seconds", type=float, default=10.0, help="how long to compute")
parser.add_argument("--size", type=int, default=4096, help="rows and columns of the matrices")
parser.add_argument("--products", type=int, default=0, help="compute this many products, however long they take")
args = parser.parse_args()
if args.seconds <= 0 or args.size < 1:
    parser.error("--seconds and --size must be more than 0")

# --- who am I? Slurm's environment variables say so -------------------------------------------------------------------
start = time.perf_counter()
job = os.environ.get("SLURM_JOB_ID", "by-hand")
node = os.environ.get("SLURMD_NODENAME") or bench.node_label()
visible_gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu.strip()]
on_gpu = torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo"
device = torch.device("cuda" if on_gpu else "cpu")
torch.backends.cuda.matmul.allow_tf32 = False  # float32 means float32, on every GPU


def uuid() -> str | None:
    """Return the unique id of the GPU, or None without a GPU."""
    if not on_gpu:
        return None
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader", f"--id={visible_gpus[0] if visible_gpus else 0}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None


say(f"job {job} in the partition {os.environ.get('SLURM_JOB_PARTITION', '-')} is on {node}")
say(f"it may use GPU number {', '.join(visible_gpus) or 'none'} there (CUDA_VISIBLE_DEVICES), and computes on {device}")

# --- the work: one matrix product after another, until the time is up or all are computed -------------------------------
a, b = torch.randn(2, args.size, args.size, device=device)
seconds = bench.time_calls(lambda: a @ b, device, budget_s=min(0.5, args.seconds))
products = 0
while products < args.products if args.products else time.perf_counter() - start < args.seconds:
    bench.time_each(lambda: a @ b, device, 20)
    products += 20
row = bench.spread_ms(seconds)
say(f"a product of two {args.size} by {args.size} matrices takes {row['median_ms']:.3f} ms here (median of {row['samples']})")

# --- the record: one file for each job, in the folder that all nodes share ----------------------------------------------
record = {
    "host": node, "gpus_given": len(visible_gpus), "gpu_uuid": uuid(), "device": bench.environment(device)["device"],
    "matmul_ms": row["median_ms"], "size": args.size, "cores": os.cpu_count(),
    "tf32_allowed": torch.backends.cuda.matmul.allow_tf32,
    "restarts_seen": int(os.environ.get("SLURM_RESTART_COUNT", "0")),
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
(out / f"job-{job}.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
(out / f"product-ms-{job}.txt").write_text(f"{row['median_ms']:.6f}\n", encoding="utf-8")  # for a shell script
say(f"written: job-{job}.json, after {time.perf_counter() - start:.1f} s")
