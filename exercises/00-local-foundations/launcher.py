"""The launcher, demystified: a loop that starts the same program many times and tells each copy who it is.

You will learn    what torchrun and SLURM do before your script runs: start the processes, and give each seven variables
You will produce  the environment of every process, the rank table of all nodes, an answer to the rank-range question
Run it            python launcher.py                                              (2 nodes with 2 processes each, all here)
                  python launcher.py --nnodes 4 --nproc-per-node 2 --answer 40-47
                  NODE_RANK=0 python launcher.py --nnodes 2     (one node only, as on a cluster; in a second terminal,
                  NODE_RANK=1 python launcher.py --nnodes 2      within a minute)
Your part         write my_environment.py: its variables then start processes on unequal nodes; answer the question
Reading           modules/00-local-foundations/lesson-2-ranks.md, "What a launcher does", and annotated.sbatch, line by line
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(
    str(Path(__file__).resolve().parent.parent / "shared")
)  # in a checkout; on a node own_part.py is beside this file

import challenge
import environments
import own_part

MAX_RANKS = 32  # processes; each takes about 230 MB, because it loads torch
MEET_S = 40  # the time limit for processes with your variables to meet

# --- knobs ------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="start nnodes times nproc-per-node processes, and tell each one who it is")
parser.add_argument("--nnodes", type=int, default=2, help="nodes to simulate")
parser.add_argument("--nproc-per-node", type=int, default=2, help="processes on each node; on a cluster, one for each GPU")
parser.add_argument("--question", type=int, default=1, help="number of the rank-range question")
parser.add_argument("--answer", type=str, default="", help="your answer to the question, first and last rank: 40-47")
args = parser.parse_args()
world_size = args.nnodes * args.nproc_per_node
if min(args.nnodes, args.nproc_per_node) < 1 or world_size > MAX_RANKS:
    parser.error(f"{args.nnodes} nodes of {args.nproc_per_node} processes: there must be 1 to {MAX_RANKS} processes in all")
try:
    verdict = challenge.judge(args.question, args.answer)
except ValueError as error:
    parser.error(f"--answer: {error}")
alone = "NODE_RANK" in os.environ  # on a cluster the launcher runs once on each node and starts only that node's processes
nodes = [int(os.environ["NODE_RANK"])] if alone else list(range(args.nnodes))
if not 0 <= nodes[0] < args.nnodes:
    parser.error(f"NODE_RANK={nodes[0]}: the nodes are 0 to {args.nnodes - 1} (--nnodes {args.nnodes})")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# --- where all meet: an address of node 0, and a free port there ------------------------------------------------------
learner_part = own_part.Process("my_environment.py")
address = os.environ.get("MASTER_ADDR", "127.0.0.1")
port = os.environ.get("MASTER_PORT") or ("29500" if alone else str(free_port()))


def describe_process(node: int, local_rank: int) -> dict[str, str]:
    """Return the variables that tell a process which one it is."""
    rank = node * args.nproc_per_node + local_rank  # the processes of earlier nodes come first, then mine
    return {
        "RANK": str(rank),                             # my number among all processes; SLURM_PROCID
        "WORLD_SIZE": str(world_size),                 # how many processes there are; SLURM_NTASKS
        "LOCAL_RANK": str(local_rank),                 # my number on this node, and so my GPU; SLURM_LOCALID
        "LOCAL_WORLD_SIZE": str(args.nproc_per_node),  # how many processes on this node; SLURM_NTASKS_PER_NODE
        "NODE_RANK": str(node),                        # which node; SLURM_NODEID (torchrun calls it GROUP_RANK)
        "MASTER_ADDR": address,                        # where rank 0 waits for the others, on node 0
        "MASTER_PORT": port,                           # and at which port
    }  # fmt: skip


# --- start all of them at once ----------------------------------------------------------------------------------------
worker = [sys.executable, "-u", str(Path(__file__).resolve().parent / "worker.py")]
settings = json.dumps({"nnodes": args.nnodes, "nproc_per_node": args.nproc_per_node, "challenge": verdict})
common = {**os.environ, "OMP_NUM_THREADS": "1"}  # many processes share these cores
if address == "127.0.0.1":
    common.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
running: dict[int, subprocess.Popen[bytes]] = {}


def stop(signal_number: int) -> None:
    """End the processes when this process is asked to end. A launcher must leave nothing behind."""
    for process in running.values():
        process.terminate()
    sys.exit(128 + signal_number)


def start(node: int, variables: dict[str, str], words: str) -> int:
    """Start a process with these variables, and return its number."""
    process = subprocess.Popen([*worker, words], env={**common, **variables})
    running[process.pid] = process
    settings_text = " ".join(f"{name}={value}" for name, value in variables.items())
    print(f"node {node}: started process {process.pid} with {settings_text}", flush=True)
    return process.pid


def wait() -> int:
    """Wait for all processes, and return the code of the first that failed, or 0. If one fails, end the others, which would
    wait for it for ever."""
    first_code = 0
    while running:
        finished = [process for process in running.values() if process.poll() is not None]
        for process in finished:
            del running[process.pid]
            if process.returncode and not first_code:
                first_code = process.returncode
                print(f"process {process.pid} failed first, with code {first_code}; the others are ended", flush=True)
                for sibling in running.values():
                    sibling.terminate()
        time.sleep(0 if finished else 0.02)
    return first_code


for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda received, _frame: stop(received))
for node in nodes:
    for local_rank in range(args.nproc_per_node):
        start(node, describe_process(node, local_rank), settings)
if wait():
    sys.exit(1)

# --- your part: processes on unequal nodes, each with the variables of your my_environment.py -------------------------
nnodes = args.nnodes if alone else max(3, args.nnodes)
free_gpus, places = environments.count_free_gpus(nnodes), environments.list_places(nnodes)
table = Path(os.environ.get("GPUCOURSE_OUT") or ".") / "your_ranks.json"
table.unlink(missing_ok=True)
your_port = int(port) + 1 if alone else free_port()
outcome = learner_part.run(None, "environments:describe_all", limit_s=20, free_gpus=free_gpus, address=address, port=your_port)
your_verdict, your_rows = (outcome.text, []) if outcome.state == "failed" else (None, [])
if outcome.state == "open":
    print("my_environment.py is open: once it is written, processes on unequal nodes meet with its variables, in rows 'yours'")
elif outcome.state == "ran":
    print(
        f"\nNow your variables, on {nnodes} nodes with {free_gpus} free GPUs, in groups of {environments.GROUP_SIZE}:",
        flush=True,
    )
    common["GPUCOURSE_COLLECTIVE_TIMEOUT_S"] = str(MEET_S)
    started = {(node, local_rank): variables for node, local_rank, variables in outcome.results[0]}
    faults = [
        f"node {node}, local rank {local_rank} was {'' if (node, local_rank) in started else 'not '}started"
        for node, local_rank in sorted(set(started) ^ set(places))
    ]
    if not faults:
        ranks_by_pid = {
            start(place[0], started[place], json.dumps({"rows": str(table)})): (rank, place)
            for rank, place in enumerate(places)
            if place[0] in nodes or not alone
        }
        exit_code = wait()
        your_rows = json.loads(table.read_text(encoding="utf-8")) if table.is_file() else []
        faults = [
            f"node {node}, local rank {local_rank} had RANK={row['rank']} and LOCAL_RANK={row['local_rank']}"
            for row in your_rows
            for rank, (node, local_rank) in [ranks_by_pid.get(row["pid"], (row["rank"], (row["node_rank"], row["local_rank"])))]
            if (row["rank"], row["local_rank"], row["node_rank"]) != (rank, local_rank, node)
        ]
        if exit_code or (0 in nodes and len(your_rows) != len(places)):
            ranks = [variables.get("RANK") for variables in started.values()]
            duplicate = next(
                (f"; {ranks.count(rank)} processes have RANK={rank}" for rank in ranks if ranks.count(rank) > 1), ""
            )
            faults.insert(0, f"not all of the {len(places)} processes met within {MEET_S} s{duplicate}")
    your_verdict = (faults or ["right"])[0]
    print(f"your variables: {your_verdict}", flush=True)
record = table.with_name("metrics.json")
if record.is_file() and 0 in nodes:  # rank 0 of the first launch wrote it
    metrics = json.loads(record.read_text(encoding="utf-8"))
    launches = [
        {"by": by, "line": f"{by}, node {row['node_rank']}", **row}
        for by, rows in (("launcher.py", metrics["ranks"]), ("yours", your_rows))
        for row in rows
    ]
    record.write_text(
        json.dumps(metrics | {"launches": launches, "your_environment": your_verdict}, indent=1), encoding="utf-8"
    )

# --- the challenge ----------------------------------------------------------------------------------------------------
words_of = {
    None: "not answered yet: --answer FIRST-LAST (with gpucourse run: --set answer=FIRST-LAST)",
    True: "right",
    False: "not right",
}
print(f"\nQuestion {args.question}: {verdict['question']}", flush=True)
print(" ".join(filter(None, ("Your answer:", verdict["answer"], words_of[verdict["right"]]))), flush=True)
