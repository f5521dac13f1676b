"""A device with a queue for exercise 1.1, which checks the timer of my_timer.py: the GPU, or a thread on the CPU.

You will learn    how to check a clock: the device records for itself when each call began and ended
You will produce  nothing directly: hello_gpu.py uses it for the rows `yours`
Run it            python hello_gpu.py
Your part         write my_timer.py; `time_with_yours` calls it
Reading           modules/01-basic-gpu/lesson.md, "How to time a GPU"
"""

from __future__ import annotations

import math
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import bench
import torch

SEED, SAMPLES, SAMPLE_S = 0, 7, 0.1
MIN_CALLS, MAX_CALLS = 4, 200
HALF, DISTURBED, TIMES = 2, 3, 20  # the sample with half of the work, and the one in which a call does 20 times the work
TOLERANCE = 1.35  # the factor by which a figure may be outside what the device recorded


class Device:
    """A device that multiplies matrices of n x n. `call` puts a product into its queue, `synchronize` waits for all of them.

    Each product belongs to a period, which `synchronize` ends. One period has half of the work. In another period, a call is
    disturbed, as by another program.
    """

    def __init__(self, n: int, dtype: torch.dtype) -> None:
        self.on = bench.here()
        source = torch.Generator().manual_seed(SEED)
        self.x, self.y = (torch.randn(n, n, generator=source).to(self.on, dtype) for _ in range(2))
        self.product = torch.empty_like(self.x)
        self.worker = ThreadPoolExecutor(1)
        self.period, self.waits = -1, 0
        self.counts: dict[int, int] = {}
        self.spans: list[tuple[int, float, float]] = []  # period, begin and end in seconds
        self.waited: dict[int, float] = {}  # when `synchronize` returned at the end of a period
        self.events: list[tuple[int, torch.cuda.Event, torch.cuda.Event]] = []

    def call(self) -> None:
        """Put a product into the queue, and return immediately."""
        count = self.counts[self.period] = self.counts.get(self.period, 0) + 1
        rows = len(self.x) // 2 if self.period == HALF else len(self.x)
        times = TIMES if self.period == DISTURBED and count == 2 else 1
        if self.on.type == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self._multiply(rows, times)
            end.record()
            self.events.append((self.period, begin, end))
        else:
            self.worker.submit(self._compute, self.period, rows, times)

    def synchronize(self) -> None:
        """Wait until the queue is empty."""
        self.waits += 1
        if self.on.type == "cuda":
            torch.cuda.synchronize()
        else:
            self.worker.submit(int).result()
        if self.period in self.counts:
            self.waited[self.period] = time.perf_counter()
            self.period += 1

    def seconds_per_call(self, calls: int) -> tuple[float, float] | None:
        """Return two limits of a call's time: medians over all periods of `calls` calls. None if there were no such periods.

        The lower one is the device's own figure. The upper one includes all that happened between two waits: on a busy
        computer, a program that waits is not woken at once.
        """
        if self.events:
            first_event = self.events[0][1]
            self.spans = [
                (n, first_event.elapsed_time(begin) / 1e3, first_event.elapsed_time(end) / 1e3) for n, begin, end in self.events
            ]
        working, between_waits = [], []
        for period in (period for period, count in self.counts.items() if count == calls and period > 0):
            spans = [(begin, end) for number, begin, end in self.spans if number == period]
            working.append((spans[-1][1] - spans[0][0]) / calls)
            between_waits.append((self.waited[period] - self.waited[period - 1]) / calls)
        return (statistics.median(working), statistics.median(between_waits)) if working else None

    def _compute(self, period: int, rows: int, times: int) -> None:
        begin = time.perf_counter()
        self._multiply(rows, times)
        self.spans.append((period, begin, time.perf_counter()))

    def _multiply(self, rows: int, times: int) -> None:
        for _ in range(times):
            torch.mm(self.x[:rows], self.y, out=self.product[:rows])


def time_with_yours(_world: None, sizes: list[int], dtype: str) -> list[dict[str, float | str]]:
    """Return, for each size, the figure of my_timer.py in seconds, and what is wrong with it, or `right`."""
    import my_timer  # the learner's file, which may raise or hang: `own_part` limits its time

    rows: list[dict[str, float | str]] = []
    for n in sizes:
        device = Device(n, getattr(torch, dtype))
        call_s = bench.percentile(bench.time_each(lambda: device._multiply(n, 1), device.on, 5), 50)  # noqa: B023, SLF001
        calls = min(MAX_CALLS, max(MIN_CALLS, math.ceil(SAMPLE_S / call_s)))
        for _ in range(calls):
            device.call()  # the queue is not empty when your timer begins
        device.period = 0
        figure = float(my_timer.time_call(device.call, device.synchronize, time.perf_counter, SAMPLES, calls))
        device.synchronize()
        rows.append({"size": n, "seconds": figure, "calls": calls, "verdict": find_fault(device, n, figure, calls)})
    return rows


def find_fault(device: Device, n: int, figure: float, calls: int) -> str:
    """Return a sentence about what is wrong with a figure, or `right`."""
    limits = device.seconds_per_call(calls)
    if device.waits > 2 * SAMPLES + 4:
        return f"size {n}: it waited {device.waits} times in {SAMPLES} samples of {calls} calls"
    if limits is None:
        return f"size {n}: the device never got {calls} calls between two waits"
    if not limits[0] / TOLERANCE <= figure <= limits[1] * TOLERANCE:
        return f"size {n}: {1e3 * figure:.3g} ms, but the device recorded {1e3 * limits[0]:.3g} ms"
    return "right"
