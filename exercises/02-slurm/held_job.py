"""A job of held.py that holds a GPU: it computes or does not, and writes the utilisation of its GPU to a table.

Run it            held.py submits it
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import time
from pathlib import Path

SAMPLES, SAMPLE_S, PAUSES = 8, 0.5, 3

parser = argparse.ArgumentParser(description="hold a GPU, and write its utilisation to a table")
parser.add_argument("--usage", type=Path, required=True, help="the table: time, node and percent on each line")
parser.add_argument("--computes", action="store_true", help="use the GPU; it pauses during the newest samples")
parser.add_argument("--ends", action="store_true", help="end after the samples")
args = parser.parse_args()
node = os.environ.get("SLURMD_NODENAME", "this node")
on_gpu = os.environ.get("GPUCOURSE_BACKEND") == "nccl" and shutil.which("nvidia-smi") is not None
if args.computes:
    import torch  # the other jobs need no torch, which takes seconds to import

    device = torch.device("cuda" if on_gpu else "cpu")
    matrix = torch.randn(512, 512, device=device)


def compute() -> None:
    """Use the GPU for a moment."""
    for _ in range(20):
        torch.tanh(matrix @ matrix).sum().item()


for sample in range(SAMPLES):
    begin, busy_s = time.perf_counter(), 0.0
    while (now := time.perf_counter()) < begin + SAMPLE_S:
        if args.computes and sample < SAMPLES - PAUSES:
            compute()
            busy_s += time.perf_counter() - now
        else:
            time.sleep(0.05)
    # Without a GPU: the share of the time in which this job computed, which is how nvidia-smi defines the utilisation of a GPU.
    percent = f"{100 * busy_s / (time.perf_counter() - begin):.0f}"
    if on_gpu:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--id=0"]
        percent = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    with args.usage.open("a", encoding="utf-8") as usage:
        usage.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {node} {percent}\n")
while not args.ends:
    time.sleep(1.0)  # it keeps its GPU until it is cancelled
