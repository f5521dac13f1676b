"""How long `deploy` takes for 2, 8 and 64 simulated nodes, the command's own start included."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

from benchmarks.lab import lab
from benchmarks.measure import Row, attempt, seconds

PROMISES = {2: 1.5, 8: 1.7, 64: 3.0}
ROUNDS = 5


def measure() -> Iterator[Row]:
    """`deploy 3 --nodes N` on an empty workspace, and its `destroy`."""
    for nodes, promise in PROMISES.items():
        yield from attempt(f"deploy, {nodes} nodes", partial(_rows, nodes, promise))


def _rows(nodes: int, promise: float) -> Iterator[Row]:
    up, down = [], []
    for _ in range(ROUNDS):
        with lab() as bench_lab:
            up.append(seconds(partial(bench_lab.type, "deploy", "3", "--nodes", str(nodes))))
            down.append(seconds(partial(bench_lab.type, "destroy", "--all", "--yes")))
    took, gone = statistics.median(up), statistics.median(down)
    yield Row(
        what=f"deploy, {nodes} nodes",
        ours_s=took,
        theirs="its destroy",
        theirs_s=gone,
        promise=f"{promise} s",
        held=took <= promise,
    )
