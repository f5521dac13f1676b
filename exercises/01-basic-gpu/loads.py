"""Four loads for a device, and the work that each of them does. gpu_monitoring.py records while they run."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Work:
    """The work of a load in `seconds`: floating-point operations, and bytes that were read or written."""

    seconds: float
    operations: float = 0.0
    moved: float = 0.0


def idle(_device: torch.device, seconds: float) -> Work:
    """Do nothing for `seconds`, and return the work, which is 0."""
    time.sleep(seconds)
    return Work(seconds)


def copying(device: torch.device, seconds: float) -> Work:
    """Copy within the device's memory, and return the work. Every byte is read and written, but nothing is computed."""
    source = torch.randn((256 << 20) // 4 if device.type == "cuda" else (64 << 20) // 4, device=device)
    target = torch.empty_like(source)
    count, elapsed_s = _repeat(lambda: target.copy_(source), device, seconds)
    return Work(elapsed_s, moved=2.0 * count * source.nbytes)


def arithmetic(device: torch.device, seconds: float) -> Work:
    """Multiply matrices, which takes many operations for each byte, and return the work."""
    n = 4096 if device.type == "cuda" else 768
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    count, elapsed_s = _repeat(lambda: a @ b, device, seconds)
    return Work(elapsed_s, operations=2.0 * n**3 * count)


def busywork(device: torch.device, seconds: float) -> Work:
    """Keep the device busy without a floating-point operation, and return the work.

    On a GPU, one thread counts clock cycles; on a CPU, all cores compute hashes.
    """
    if device.type == "cuda":
        _, elapsed_s = _repeat(lambda: torch.cuda._sleep(20_000_000), device, seconds)  # noqa: SLF001 (a kernel of one thread)
        return Work(elapsed_s)
    start, text = time.perf_counter(), bytes(4 << 20)

    def hashes() -> None:
        while time.perf_counter() - start < seconds:
            hashlib.sha256(text)  # releases the interpreter's lock, so that all cores work

    threads = [threading.Thread(target=hashes) for _ in range(torch.get_num_threads())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Work(time.perf_counter() - start)


LOADS = {"idle": idle, "copying": copying, "arithmetic": arithmetic, "busywork": busywork}


def _repeat(call: Callable[[], object], device: torch.device, seconds: float) -> tuple[int, float]:
    """Make as many calls as fit into `seconds`. Return their number, and the seconds until the last one really ended."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(4):  # a few at a time, so that the device does not wait after each
            call()
        count += 4
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return count, time.perf_counter() - start
