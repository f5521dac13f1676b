"""The worker that launcher.py starts: a process that reads from its environment who it is, meets the others, and reports.

You will learn    that a rank is told everything: nothing in here counts processes or looks for other nodes
You will produce  a line from each process; rank 0 writes rank_table.txt and metrics.json
Run it            python launcher.py (it starts this file); or by hand, in two terminals:
                  export WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
                  RANK=0 NODE_RANK=0 python worker.py          (and in the other: RANK=1 NODE_RANK=1 python worker.py)
                  torchrun --nproc-per-node=4 worker.py        (another launcher, the same table)
Your part         start only one of the two, and see what it waits for, and for how long
Reading           modules/00-local-foundations/lesson-2-ranks.md, "What a launcher does"
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py is beside this file

import bench
import torch
import torch.distributed as dist
from bench import say

SEED = 0
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK")

os.environ.setdefault("NODE_RANK", os.environ.get("GROUP_RANK", ""))  # torchrun's name for it

# --- who am I? --------------------------------------------------------------------------------------------------------
if missing := [name for name in (*NAMES, "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]:
    sys.exit(f"not set: {', '.join(missing)}. Start launcher.py, or set them by hand")
me = {name.lower(): int(os.environ[name]) for name in NAMES}
me |= {"master": f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", "pid": os.getpid(), "parent": os.getppid()}
place = f"[node {me['node_rank']}, rank {me['rank']}]"
timeout_s = float(os.environ.get("GPUCOURSE_COLLECTIVE_TIMEOUT_S", "60"))

# --- meet the others: rank 0 listens at the master's address, the others connect, and each waits for all --------------
say(f"{place} process {me['pid']}: meeting {me['world_size'] - 1} others at {me['master']}")
start_s = time.perf_counter()
try:
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
except (RuntimeError, ValueError) as error:
    sys.exit(
        f"{place} the others did not arrive within {timeout_s:g} s, or another process has my rank: "
        f"{str(error).splitlines()[0]}"
    )
world_size, met_s = dist.get_world_size(), time.perf_counter()
total = torch.tensor([float(me["rank"] + 1)])
dist.all_reduce(total)  # each rank contributes rank + 1: the sum shows whether all took part
times = {"meeting_ms": 1e3 * (met_s - start_s), "sum_ms": 1e3 * (time.perf_counter() - met_s)}
everyone: list[dict[str, object]] = [{}] * world_size
dist.all_gather_object(everyone, me | times | {"sum": total.item()})
say(f"{place} all {world_size} are here; 1 + 2 + ... + {world_size} = {total.item():g}")

# --- the record -------------------------------------------------------------------------------------------------------
settings = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
if me["rank"] == 0 and "rows" in settings:
    Path(settings["rows"]).write_text(json.dumps(everyone), encoding="utf-8")
elif me["rank"] == 0:
    for row in everyone:
        row["should_be"] = row["node_rank"] * row["local_world_size"] + row["local_rank"]
    metrics = {
        "nnodes": settings.get("nnodes"), "nproc_per_node": settings.get("nproc_per_node"),
        "challenge": settings.get("challenge"),
        "asked_ranks": settings["nnodes"] * settings["nproc_per_node"] if settings else world_size, "ranks": everyone,
        "waited_ms": sum(row["meeting_ms"] for row in everyone) - world_size * min(row["meeting_ms"] for row in everyone),
        "nodes": len({row["node_rank"] for row in everyone}), "processes": len({row["pid"] for row in everyone}),
        "wrong_ranks": sum(row["rank"] != row["should_be"] for row in everyone),
        "twice_on_a_node": world_size - len({(row["node_rank"], row["local_rank"]) for row in everyone}),
        "expected_sum": world_size * (world_size + 1) / 2,
        "meeting_over_sum": median(row["meeting_ms"] / row["sum_ms"] for row in everyone),
    }  # fmt: skip
    titles = {name.lower(): name for name in NAMES} | {"master": "MASTER_ADDR:PORT"}
    table_text = bench.table(everyone, titles)
    path = bench.write_metrics("launcher/1", torch.device("cpu"), world_size=world_size, seed=SEED, metrics=metrics)
    path.with_name("rank_table.txt").write_text(table_text + "\n", encoding="utf-8")
    bench.say_table(everyone, titles)
    bench.say_end(path, torch.device("cpu"))

dist.barrier()
dist.destroy_process_group()
