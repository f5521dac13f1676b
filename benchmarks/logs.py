"""Measure `logs --fold` and `logs --times` on logs that are hard to read: two ranks of 4 MB each (100 MB in one line).

The speed is the bytes of both logs per processor time, without the program's start, which is measured with two empty logs.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from functools import partial
from itertools import repeat
from pathlib import Path

from benchmarks.lab import Lab, lab
from benchmarks.measure import Row, attempt

ROUNDS = 3
MB = 10**6
SIZE = 4 * MB
MIN_MB_PER_S, MAX_MEMORY_MB = 3.0, 100.0
KINDS = ("numbered lines", "random bytes", "one line without an end", "lines of 10 bytes in another order on each rank")
NOTED_BYTES, DENSE_NOTED_BYTES = 65536, 10  # how many bytes of a log share one arrival time


def measure() -> Iterator[Row]:
    """Yield the speed of each command for each kind of log, and its largest memory."""
    with lab() as bench_lab:
        bench_lab.type("deploy", "3")
        bench_lab.type("run", "3.1", "--nodes", "2", "--no-predict")
        for option in ("--fold", "--times"):
            yield from attempt(f"logs {option}", partial(_measure_option, bench_lab, option))


def _measure_option(bench_lab: Lab, option: str) -> Iterator[Row]:
    (folder,) = bench_lab.root.glob("runs/3.1/*/logs")
    cases = [(kind, kind, NOTED_BYTES) for kind in KINDS]
    if option == "--times":
        cases.append(("a note of the time for each line of 10 bytes", KINDS[-1], DENSE_NOTED_BYTES))
    _write_logs(folder, "", NOTED_BYTES)
    start_s, memory_mb = _measure_command(bench_lab, option)
    for what, kind, noted_bytes in cases:
        size = _write_logs(folder, kind, noted_bytes)
        cpu_s, peak_mb = _measure_command(bench_lab, option)
        memory_mb = max(memory_mb, peak_mb)
        speed = size / MB / max(cpu_s - start_s, 0.001)
        yield Row(what=f"logs {option}, {what}", ours=speed, unit="MB/s", limit=MIN_MB_PER_S, is_minimum=True)
    yield Row(what=f"logs {option}, memory", ours=memory_mb, unit="MB", limit=MAX_MEMORY_MB)


def _measure_command(bench_lab: Lab, option: str) -> tuple[float, float]:
    costs = [bench_lab.measure("logs", option) for _ in range(ROUNDS)]
    return statistics.median(cost.cpu_s for cost in costs), max(cost.memory_mb for cost in costs)


def _write_logs(folder: Path, kind: str, noted_bytes: int) -> int:
    """Write the logs of two ranks with their arrival times, and return the bytes of both logs."""
    size = 0
    for rank in range(2):
        (log,) = folder.glob(f"*-rank{rank}.log")
        with log.open("wb") as file:
            file.writelines(_make_log(kind, random.Random(rank)))
            places = range(noted_bytes, file.tell() + noted_bytes, noted_bytes)
            size += file.tell()
        with log.with_suffix(".times").open("w", encoding="utf-8") as notes:
            began = 1_900_000_000 + rank * 0.0005
            notes.writelines(f"{place} {began + number / 1000:.3f}\n" for number, place in enumerate(places))
    return size


def _make_log(kind: str, choices: random.Random) -> Iterator[bytes]:
    if kind == "numbered lines":
        yield from (b"[rank %d] step %07d: loss %.6f\n" % (choices.randrange(2), n, n % 997 / 7) for n in range(SIZE // 38))
    elif kind == "random bytes":
        yield from (choices.randbytes(100) for _ in range(SIZE // 100))
    elif kind == "one line without an end":
        yield from repeat(b"x" * 1000, SIZE // 40)
    elif kind:
        for first in range(0, SIZE // 10, 100):
            yield from (b"%09d\n" % number for number in choices.sample(range(first, first + 100), 100))
