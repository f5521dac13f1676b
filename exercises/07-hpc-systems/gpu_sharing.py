"""Let several processes share one GPU, with time-slicing and with MPS; measure requests per second and the time of a request.

Started as a program, this file is one of the processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOADS = {"small": 256, "full": 8192}  # the side of a matrix product: one leaves most of a card idle, one fills it
WAIT_S = 120


def measure(processes: list[int], seconds: float) -> tuple[list[dict], str | None]:
    """Return a row for each way, load and number of processes, and the reason if MPS could not be measured.

    A row has requests per second in total, and the median and 99th percentile of the time of a request. Its `line` names both
    the way and the load.
    """
    rows = [_run("time-slicing", load, count, seconds, {}) for load in LOADS for count in processes]
    with _start_mps() as (environment, reason):
        if environment is not None:
            for load in LOADS:
                for count in processes:
                    share = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(100 // count)}
                    rows.append(_run("mps", load, count, seconds, environment | share))
    return rows, reason


def find_gain(rows: list[dict], load: str) -> float | None:
    """Return the requests per second with MPS divided by those with time-slicing, or None if MPS was not measured.

    Both are for the largest number of processes.
    """
    largest_count = max((row["processes"] for row in rows), default=0)
    by_way = {row["way"]: row["requests_per_s"] for row in rows if row["load"] == load and row["processes"] == largest_count}
    return by_way["mps"] / by_way["time-slicing"] if "mps" in by_way else None


@contextmanager
def _start_mps() -> Iterator[tuple[dict[str, str] | None, str | None]]:
    """Yield the environment of MPS clients while a daemon with its own folder runs. The daemon always ends."""
    if shutil.which("nvidia-cuda-mps-control") is None:
        yield None, "not measured: nvidia-cuda-mps-control is not installed"
        return
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        environment = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log"}
        for path in environment.values():
            Path(path).mkdir()
        whole = os.environ | environment
        try:
            process = subprocess.run(
                ["nvidia-cuda-mps-control", "-d"], env=whole, capture_output=True, text=True, timeout=30, check=False
            )
            words = (process.stderr or process.stdout or f"code {process.returncode}").strip().splitlines()
            if process.returncode:
                yield None, f"not measured: the MPS daemon does not start ({words[0]})"
            else:
                yield environment, None
        finally:
            subprocess.run(
                ["nvidia-cuda-mps-control"], input="quit\n", env=whole, capture_output=True, text=True, timeout=60, check=False
            )


def _run(way: str, load: str, count: int, seconds: float, environment: dict[str, str]) -> dict[str, object]:
    command = [sys.executable, __file__, str(LOADS[load]), str(seconds)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | environment)
        for _ in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"one of {count} processes with {way} could not use the GPU: its message is above")
        for process in processes:  # all at once
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        times = [float(word) for process in processes for word in process.communicate(timeout=seconds + WAIT_S)[0].split()]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    times.sort()
    return {
        "way": way, "load": load, "line": f"{way}, {load} kernels", "processes": count,
        "requests_per_s": len(times) / seconds,
        "p50_ms": 1e3 * times[len(times) // 2], "p99_ms": 1e3 * times[min(len(times) - 1, int(0.99 * len(times)))],
    }  # fmt: skip


def _run_as_process(side: int, seconds: float) -> None:
    import torch

    a, b = (torch.randn(side, side, device="cuda", dtype=torch.float16) for _ in range(2))
    for _ in range(10):
        a @ b
    torch.cuda.synchronize()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    times = []
    ends = time.perf_counter() + seconds
    while (start := time.perf_counter()) < ends:
        for _ in range(20 if side < 1024 else 1):  # a request
            a @ b
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    sys.stdout.write(" ".join(f"{seconds_taken:.6f}" for seconds_taken in times))


if __name__ == "__main__":
    _run_as_process(int(sys.argv[1]), float(sys.argv[2]))
