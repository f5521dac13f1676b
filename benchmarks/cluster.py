"""A simulated Slurm cluster of 3, 16 and 64 nodes: how long until every node is idle, how long until all is gone, and the
memory of each additional node. `CLUSTER_NODES=3,16` measures some of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.lab import Lab, lab
from benchmarks.measure import Row, attempt, seconds
from gpucourse.local import processes

NODES = "3,16,64"


def measure() -> Iterator[Row]:
    """`deploy 2 --nodes N` from the command to the prompt, `destroy 2`, and what the cluster holds in memory between the two.
    Nothing is promised of a whole command; the rows are there to be read."""
    smaller: list[tuple[int, float]] = []
    for nodes in map(int, os.environ.get("CLUSTER_NODES", NODES).split(",")):
        yield from attempt(f"Slurm, {nodes} nodes idle", partial(_rows, nodes, smaller))


def _rows(nodes: int, smaller: list[tuple[int, float]]) -> Iterator[Row]:
    """One cluster. `smaller`: the nodes and MiB of those before it, to which it adds its own."""
    with lab() as bench_lab:
        up = seconds(partial(bench_lab.type, "deploy", "2", "--nodes", str(nodes)))
        memory = _memory_mib(bench_lab)
        down = seconds(partial(bench_lab.type, "destroy", "2", "--yes"))
    more = f": {(memory - smaller[-1][1]) / (nodes - smaller[-1][0]):.1f} MiB a further node" if smaller else ""
    smaller.append((nodes, memory))
    yield Row(
        what=f"Slurm, {nodes} nodes idle; {memory:.0f} MiB{more}",
        ours_s=up,
        theirs="its destroy",
        theirs_s=down,
        promise="none",
        held=True,
    )


def _memory_mib(bench_lab: Lab) -> float:
    """The proportional share (PSS) of every process that carries this cluster's mark, its host among them. The
    machines' disks in memory are not in it."""
    record = next((bench_lab.root / ".gpucourse" / "deployments").glob("02-*.json"))
    uid = json.loads(record.read_text(encoding="utf-8"))["uid"]
    return sum(map(_pss_kib, processes.list_carriers(processes.marker(processes.STACK, uid)))) / 1024


def _pss_kib(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0  # it has ended since it was found
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
