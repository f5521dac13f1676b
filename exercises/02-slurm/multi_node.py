"""Multi-node job: one command on several machines at the same time; each process is told who it is, and all agree on a sum.

You will learn    what --nodes and --ntasks-per-node mean; what srun does; SLURM_PROCID, SLURM_NODEID, SLURM_LOCALID
You will produce  a log for each process; a table from SLURM_PROCID to machine; an exact AllReduce, and its time by length
Run it            gpucourse run 2.3                      (two nodes)
                  gpucourse run 2.3 --nodes 3            (all three)
                  python multi_node.py                   (a world of one)
Your part         write the batch file itself: my_multi_node.sbatch
Reading           modules/02-slurm/lesson-2-machines.md, "Several machines"
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py is beside this file

import bench
import ranks
import torch
import torch.distributed as dist
from bench import say

# --- knobs ---------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="where the processes of srun run, and an exact AllReduce between them")
parser.add_argument("--elements", type=int, default=1_000_000, help="length of the tensor that all processes add up")
args = parser.parse_args()
if args.elements < 1:
    parser.error("--elements must be at least 1")

# --- who am I? The batch script ran once, on the first machine; srun started this process, and the others ----------------
slurm = {name: os.environ.get(f"SLURM_{name}") for name in ("PROCID", "NODEID", "LOCALID", "NTASKS", "JOB_NODELIST")}
host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
say(f"SLURM_PROCID {slurm['PROCID']} of {slurm['NTASKS']} is on {host}, machine {slurm['NODEID']} of {slurm['JOB_NODELIST']}")

start = time.perf_counter()
world = ranks.join()
say(f"rank {world.rank} of {world.size}: joined after {time.perf_counter() - start:.2f} s")
if world.device.type == "cpu" and torch.cuda.is_available():
    say(f"rank {world.rank} computes on the CPU, with gloo: NCCL needs a GPU for each process, and there are fewer")

# --- the experiment: rank r contributes r + 1 in every element, so the sum is 1 + 2 + ... + n = n(n+1)/2 ----------------
right_sum = world.size * (world.size + 1) / 2
tensor = torch.full((args.elements,), float(world.rank + 1), device=world.device)
dist.all_reduce(tensor)
wrong_count = int((tensor != right_sum).sum())
say(f"rank {world.rank}: contributed {world.rank + 1}, the sum is {tensor[0].item():g}, expected {right_sum:g}")

zeros = torch.zeros(args.elements, device=world.device)


def time_slowest(call: Callable[[], object]) -> dict[str, float]:
    """Return the spread of a call's times. Each time is that of the slowest process."""
    times = bench.time_calls(call, world.device, budget_s=0.2, agree=lambda estimate: world.slowest([estimate])[0])
    return bench.spread_ms(world.slowest(times))


lengths = []  # of messages, from one element to all
for count in sorted({1, max(1, args.elements // 100), max(1, args.elements // 10), args.elements}):
    piece = zeros[:count]
    sync = time_slowest(lambda: dist.all_reduce(piece))  # noqa: B023 (called at once)
    local = time_slowest(lambda: torch.add(piece, piece, out=piece))  # noqa: B023 (as many additions within each process)
    lengths.append({"count": count, "sync_ms": sync["median_ms"], "local_ms": local["median_ms"]})
in_100_ms = 100 * next(row["sync_ms"] for row in lengths if row["count"] == max(1, args.elements // 100))
if world.rank == 0:
    bench.say_table(lengths, {"count": "elements", "sync_ms": "AllReduce ms", "local_ms": "additions ms"})
    say(f"an AllReduce takes {sync['median_ms']:.3f} ms, as many additions within a process {local['median_ms']:.3f} ms")

own_facts = {
    "rank": world.rank, "procid": int(slurm["PROCID"] or 0), "nodeid": int(slurm["NODEID"] or 0),
    "localid": int(slurm["LOCALID"] or 0), "host": host, "machine": socket.gethostname(), "pid": os.getpid(),
    "device": str(world.device), "sum": tensor[0].item(), "wrong": wrong_count,
    "gpus_given": len([gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu.strip()]),
}  # fmt: skip
rows = world.gather(own_facts)


def count_computers() -> int:
    """Return the number of computers behind this job's nodes, or 0 if Slurm does not answer. Usually each node is one."""
    command = ["scontrol", "--oneliner", "show", "node", slurm["JOB_NODELIST"] or ""]
    if not slurm["JOB_NODELIST"] or shutil.which(command[0]) is None:
        return 0
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return len(set(re.findall(r"NodeHostName=(\S+)", output)))


def count_unchecked(nodes: set[str]) -> int | None:
    """Return how many machines check_machine.py has not checked exactly once. Return None if no machine was checked, as in the
    course's own batch file."""
    files = Path(os.environ.get("GPUCOURSE_OUT") or ".").glob(f"machine-{os.environ.get('SLURM_RESTART_COUNT', '0')}-*.json")
    checked = [json.loads(file.read_text(encoding="utf-8"))["node"] for file in files]
    return sum(checked.count(node) != 1 for node in nodes) if checked else None


# --- the record: rank 0 writes it, and the table comes from the same rows --------------------------------------------------
if world.rank == 0:
    nodes, computers = len({row["host"] for row in rows}), count_computers()
    could_differ = not 0 < computers < nodes
    if not could_differ:
        say(f"Slurm's {nodes} nodes share {computers} computers, so only SLURMD_NODENAME tells them apart, not hostname")
    metrics = {
        "backend": dist.get_backend(), "elements": args.elements, "ranks": rows, "expected_sum": right_sum,
        "hosts": nodes, "machines": len({row["machine"] for row in rows}) if could_differ else None, "computers": computers,
        "unchecked": count_unchecked({row["host"] for row in rows}),
        "wrong_elements": sum(row["wrong"] for row in rows),
        "misplaced": sum(row["rank"] != row["procid"] for row in rows),
        "lengths": lengths, "in_100_of_one": in_100_ms / sync["median_ms"],
        "sync_ms": sync["median_ms"], "local_ms": local["median_ms"],
        "sync_of_local": sync["median_ms"] / local["median_ms"], "nodelist": slurm["JOB_NODELIST"],
    }  # fmt: skip
    titles = {"procid": "SLURM_PROCID", "nodeid": "NODEID", "localid": "LOCALID", "host": "node", "sum": "sum"}
    bench.say_table(rows, titles)
    path = bench.write_metrics("multi_node/1", world.device, world_size=world.size, seed=0, metrics=metrics)
    bench.say_end(path, world.device)
dist.destroy_process_group()
