"""How long a person waits for `--help` and `status`, compared with an interpreter that does nothing."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.lab import lab
from benchmarks.measure import Row, medians

ROUNDS = 21


def measure() -> list[Row]:
    """`--help` and `status` (with two nodes up) against `python -c pass`."""
    with lab() as bench_lab:
        bench_lab.type("deploy", "3")
        nothing, helped, status = medians(
            lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            lambda: bench_lab.type("--help"),
            lambda: bench_lab.type("status"),
            rounds=ROUNDS,
        )
    return [
        Row(what="--help", ours_s=helped, theirs="python -c pass", theirs_s=nothing, promise="0.13 s", held=helped <= 0.13),
        Row(
            what="status, 2 nodes",
            ours_s=status,
            theirs="python -c pass",
            theirs_s=nothing,
            promise="0.10 s",
            held=status <= 0.10,
        ),
    ]
