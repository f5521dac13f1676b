"""The device of `streams.py` on a real GPU: CUDA's streams, events and page-locked memory, and the pipeline's times.

CudaDevice has the methods of ReplayedDevice, so the same pipeline runs on both. Times are medians, in milliseconds of wall time
between two synchronisations. The times of a single engine come from events.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

import nvidia_smi
import streams
import torch

ASYNC_ENGINES = 40  # CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT
DIFFERENT, UNTOUCHED, REPEATS = 4096, -1.0, 5
Run = Callable[[Any, int], None]


class CudaDevice:
    """A GPU with `buffers` for `chunks` of `numbers` float32 numbers.

    `pinned`: host memory is page-locked, so the GPU reads it by itself. Otherwise, the call waits while each copy goes through
    page-locked memory.
    """

    def __init__(self, chunks: int, buffers: int, numbers: int, *, pinned: bool = True) -> None:
        self.chunks, self.buffers, self.passes = chunks, buffers, 1
        pattern = torch.arange(numbers, dtype=torch.float32) % DIFFERENT
        self.inputs = [torch.empty(numbers, pin_memory=pinned).copy_(pattern + chunk * DIFFERENT) for chunk in range(chunks)]
        self.outputs = [torch.empty(numbers, pin_memory=pinned) for _ in range(chunks)]
        self.memory = [torch.empty(numbers, device="cuda") for _ in range(buffers)]

    def stream(self) -> torch.cuda.Stream:
        """Return a new stream."""
        return torch.cuda.Stream()

    def copy_in(self, stream: torch.cuda.Stream, chunk: int, buffer: int) -> None:
        """Copy the host's input `chunk` into `buffer`."""
        with torch.cuda.stream(stream):
            self.memory[buffer].copy_(self.inputs[chunk], non_blocking=True)

    def compute(self, stream: torch.cuda.Stream, buffer: int) -> None:
        """Add 1 to every number of `buffer`, `passes` times, so that the kernel takes as long as the exercise needs."""
        with torch.cuda.stream(stream):
            for _ in range(self.passes):
                self.memory[buffer].add_(1.0)

    def copy_out(self, stream: torch.cuda.Stream, buffer: int, chunk: int) -> None:
        """Copy `buffer` to the host's output `chunk`."""
        with torch.cuda.stream(stream):
            self.outputs[chunk].copy_(self.memory[buffer], non_blocking=True)

    def record(self, stream: torch.cuda.Stream) -> torch.cuda.Event:
        """Return an event that marks everything that is in `stream` now."""
        event = torch.cuda.Event()
        event.record(stream)
        return event

    def wait(self, stream: torch.cuda.Stream, event: torch.cuda.Event) -> None:
        """Make everything that is queued in `stream` from now on wait for `event`."""
        stream.wait_event(event)

    def count_wrong(self) -> int:
        """Return how many chunks contain wrong numbers. All numbers are integers below 2**24, so float32 is exact."""
        return sum(not torch.equal(out, numbers + self.passes) for numbers, out in zip(self.inputs, self.outputs, strict=True))

    def reset(self) -> None:
        """Clear the results of an earlier pipeline."""
        for memory in (*self.outputs, *self.memory):
            memory.fill_(UNTOUCHED)
        torch.cuda.synchronize()


def time_pipeline(run: Run, device: CudaDevice) -> tuple[float, int]:
    """Return the median milliseconds of several warm runs of a pipeline, and the highest number of wrong chunks in any run."""
    milliseconds, wrong_count = [], 0
    for _ in range(REPEATS + 1):
        device.reset()
        start = time.perf_counter()
        run(device, device.chunks)
        torch.cuda.synchronize()
        milliseconds.append(1e3 * (time.perf_counter() - start))
        wrong_count = max(wrong_count, device.count_wrong())
    return statistics.median(milliseconds[1:]), wrong_count


def time_engines(device: CudaDevice) -> dict[str, float]:
    """Return the milliseconds of one chunk on each engine while the others are idle. The kernel makes one pass."""
    stream = device.stream()
    calls: dict[str, Callable[[], None]] = {
        streams.COPY_IN: lambda: device.copy_in(stream, 0, 0),
        streams.COMPUTE: lambda: device.compute(stream, 0),
        streams.COPY_OUT: lambda: device.copy_out(stream, 0, 0),
    }
    took = {}
    for engine, call in calls.items():
        call()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(stream)
        for _ in range(REPEATS):
            call()
        end.record(stream)
        torch.cuda.synchronize()
        took[engine] = begin.elapsed_time(end) / REPEATS
    return took


def count_copy_engines() -> int | None:
    """Return how many copies the GPU can make at the same time, or None if the driver does not report it."""
    try:
        value = ctypes.c_int()
        code = ctypes.CDLL("libcuda.so.1").cuDeviceGetAttribute(ctypes.byref(value), ASYNC_ENGINES, 0)
    except (OSError, AttributeError):
        return None
    return value.value if code == 0 else None


def find_best_ms(chunks: int, took: dict[str, float], buffers: int, copy_engines: int | None) -> float:
    """Return the shortest time that the engines' times permit, in milliseconds.

    If both directions share a single copy engine, no pipeline is faster than all copies one after the other, or than all
    kernels, the first copy in and the last copy out.
    """
    if copy_engines == 1:
        copies = took[streams.COPY_IN] + took[streams.COPY_OUT]
        return max(chunks * copies, copies + chunks * took[streams.COMPUTE])
    return streams.best_units(chunks, [took[engine] for engine in streams.ENGINES], buffers)


def measure(run: Run, sequential: Run, chunks: int, buffers: int, megabytes: int, ratio: float) -> dict[str, Any]:
    """Return the times of the learner's pipeline on a GPU, and of the same work in one stream.

    The kernel takes `ratio` times as long as a copy.

    An impossible figure is None and is counted in `refused`: a copy faster than the link, or a pipeline faster than its
    engines.
    """
    device = CudaDevice(chunks, buffers, megabytes * 250_000)
    engine_times = time_engines(device)
    device.passes = max(1, round(ratio * engine_times[streams.COPY_IN] / engine_times[streams.COMPUTE]))
    took = time_engines(device)
    sequential_ms, _ = time_pipeline(sequential, device)
    yours_ms, wrong_count = time_pipeline(run, device)
    passes = device.passes
    del device  # page-locked memory is scarce, and the next device takes as much again
    pageable = CudaDevice(chunks, buffers, megabytes * 250_000, pinned=False)
    pageable.passes = passes
    pageable_ms, _ = time_pipeline(run, pageable)
    copy_engines, link = count_copy_engines(), nvidia_smi.find_pcie_gb_per_s()
    best_ms = find_best_ms(chunks, took, buffers, copy_engines)
    copy_gb_per_s = megabytes / took[streams.COPY_IN]
    too_fast, impossible = link is not None and copy_gb_per_s > link, yours_ms < 0.9 * best_ms
    return {
        "copy_in_ms": took[streams.COPY_IN],
        "compute_ms": took[streams.COMPUTE],
        "copy_out_ms": took[streams.COPY_OUT],
        "copy_gb_per_s": None if too_fast else copy_gb_per_s,
        "link_gb_per_s": link,
        "sequential_ms": sequential_ms,
        "yours_ms": None if impossible else yours_ms,
        "pageable_ms": pageable_ms,
        "best_ms": best_ms,
        "speedup": None if impossible else sequential_ms / yours_ms,
        "least_speedup": 1.3 if copy_engines == 1 else 1.5,
        "chunks_wrong": wrong_count,
        "async_engines": copy_engines,
        "refused": too_fast + impossible,
    }
