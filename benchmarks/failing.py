"""How soon a person is told: about a failed rank, from its end; about a silent rank, beyond the time-out."""

from __future__ import annotations

import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.lab import GPUCOURSE, Lab, lab
from benchmarks.measure import Row, attempt

ROUNDS = 5
LIMIT_S = 3.0
SILENCE_S = 2.0

# Each rank writes the moment from which the clock runs: the end of rank 1, or the last word of rank 1.
FAILING = """
import os, pathlib, sys, time
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(20):
    dist.barrier()
    time.sleep(0.02)
print("step", step, flush=True)
if rank == 1:
    pathlib.Path({moment!r}).write_text(repr(time.time()))
    os._exit(3)
dist.barrier()
"""
SILENT = """
import os, pathlib, signal, time
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(200):
    dist.barrier()
    time.sleep(0.02)
    print("step", step, flush=True)
    if rank == 1 and step == 10:
        pathlib.Path({moment!r}).write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGSTOP)
"""


def measure() -> Iterator[Row]:
    """Seconds from the moment on a node to the line on the screen; torchrun over two simulated nodes."""
    with lab() as bench_lab:
        bench_lab.type("deploy", "3")
        what = "a failing rank is named after its end"
        failed = partial(_seconds_until_message, bench_lab, FAILING, r"rank 1 on node1 failed with exit code 3")
        yield from attempt(what, partial(_rows, what, failed, LIMIT_S))
        what = f"a rank silent beyond {SILENCE_S:g} s is named after its last word"
        pattern = r"rank 1 on node1 has said nothing for \d+ s; its process is stopped"
        silent = partial(_seconds_until_message, bench_lab, SILENT, pattern, "--silence", f"{SILENCE_S:g}s", "--timeout", "20s")
        yield from attempt(what, partial(_rows, what, silent, SILENCE_S + LIMIT_S))


def _rows(what: str, told: Callable[[], float], limit_s: float) -> Iterator[Row]:
    """The worst of all rounds has to keep the promise, not the median."""
    seconds = [told() for _ in range(ROUNDS)]
    yield Row(
        what=what,
        ours_s=statistics.median(seconds),
        theirs=f"worst of {len(seconds)}: {max(seconds):.2f} s",
        theirs_s=None,
        promise=f"{limit_s:g} s",
        held=max(seconds) <= limit_s,
    )


def _seconds_until_message(bench_lab: Lab, script: str, pattern: str, *more: str) -> float:
    """How long after the moment that the script wrote down the line came."""
    moment, path = bench_lab.root / "moment", bench_lab.root / "failing.py"
    moment.unlink(missing_ok=True)
    Path(path).write_text(script.format(moment=str(moment)))
    words = [GPUCOURSE, "run", "--script", str(path), "--launcher", "torchrun", *more]
    told: float | None = None
    with subprocess.Popen(
        words, env=bench_lab.environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        for line in running.stderr or ():
            if told is None and re.search(pattern, line):
                told = time.time()
    if told is None:
        raise RuntimeError(f"nobody said: {pattern}")
    return told - float(moment.read_text())
