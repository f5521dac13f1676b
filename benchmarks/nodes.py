"""Measure the elapsed time of `deploy` and `run` with 64 simulated nodes, and the memory of `run`."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.lab import lab
from benchmarks.measure import Row
from gpucourse.limits import MAX_NODES

ROUNDS = 3
NODES = MAX_NODES
MAX_DEPLOY_S, MAX_RUN_S, MAX_MB_PER_NODE = 5.0, 15.0, 10.0
SCRIPT = """
import os, pathlib, socket
print(socket.gethostname())
pathlib.Path(os.environ["GPUCOURSE_OUT"], "a.txt").write_text("a")
"""


def measure() -> Iterator[Row]:
    """Yield `deploy`, then `run` of a script that prints its host's name and leaves a file."""
    deploys, runs = [], []
    for _ in range(ROUNDS):
        with lab() as bench_lab:
            deploys.append(bench_lab.measure("deploy", "3", "--nodes", str(NODES)))
            script = bench_lab.root / "host.py"
            script.write_text(SCRIPT, encoding="utf-8")
            words = ("run", "--script", str(script), "--launcher", "python", "--nodes", str(NODES))
            runs.append(bench_lab.measure(*words))
    deploy_s, run_s = (statistics.median(cost.wall_s for cost in costs) for costs in (deploys, runs))
    yield Row(what=f"deploy, {NODES} nodes", ours=deploy_s, limit=MAX_DEPLOY_S)
    yield Row(what=f"run, {NODES} nodes", ours=run_s, limit=MAX_RUN_S)
    memory_mb = max(cost.memory_mb for cost in runs)
    yield Row(what=f"run, {NODES} nodes, memory", ours=memory_mb, unit="MB", limit=MAX_MB_PER_NODE * NODES)
