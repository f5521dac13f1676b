"""The processor time of `--help` and `status`."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.lab import lab
from benchmarks.measure import Row, medians

ROUNDS = 21
LIMIT_S = 0.20


def measure() -> Iterator[Row]:
    """Yield `--help`, and `status` with two nodes up."""
    with lab() as bench_lab:
        bench_lab.type("deploy", "3")
        (help_s, status_s) = medians(
            lambda: bench_lab.measure("--help").cpu_s, lambda: bench_lab.measure("status").cpu_s, rounds=ROUNDS
        )
    yield Row(what="--help, processor time", ours=help_s, limit=LIMIT_S)
    yield Row(what="status, 2 nodes, processor time", ours=status_s, limit=LIMIT_S)
