"""The part of 5.8 that needs a GPU: copies around a filter, two streams that hide them, cuFFT's plans, and the CPU's time."""

from __future__ import annotations

from collections.abc import Callable

import bench
import torch
from transforms import Recording, score_error

KEYS = ("with_copies_us", "overlapped_us", "overlapped_error", "filter_percent_of_copies", "plan_first_ms", "plan_again_ms",
        "plans_kept", "cpu_us_per_signal", "times_cpu")  # fmt: skip
CHUNKS, CPU_SIGNALS, TURNS = 8, 512, 5
Filter = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def measure_copies(recording: Recording, matched_filter: Filter, length: int, device: torch.device) -> dict[str, float | None]:
    """Return the figures of `KEYS`, in microseconds per signal unless the name says otherwise. Without a GPU, all are
    None."""
    if device.type != "cuda":
        return dict.fromkeys(KEYS)
    count, template = len(recording.signals), recording.template.to(device)
    source = recording.signals.pin_memory()
    target = torch.empty_like(source).pin_memory()
    resident = source.to(device)

    def copy_and_filter() -> None:
        target.copy_(matched_filter(source.to(device, non_blocking=True), template), non_blocking=True)

    pair = (torch.cuda.Stream(), torch.cuda.Stream())
    reference = matched_filter(resident, template)
    us = {
        "filter": _us_per_signal(lambda: matched_filter(resident, template), device, count),
        "with_copies_us": _us_per_signal(copy_and_filter, device, count),
        "overlapped_us": _us_per_signal(lambda: _overlap(source, target, template, matched_filter, pair), device, count),
    }
    overlapped_error = score_error(target.to(device), reference.double())
    sample = recording.signals[:CPU_SIGNALS]
    on_cpu = _us_per_signal(lambda: matched_filter(sample, recording.template), torch.device("cpu"), len(sample))
    return {
        "with_copies_us": us["with_copies_us"], "overlapped_us": us["overlapped_us"], "overlapped_error": overlapped_error,
        "filter_percent_of_copies": 100 * us["filter"] / us["with_copies_us"], **_time_plans(resident[:64], length, device),
        "cpu_us_per_signal": on_cpu, "times_cpu": on_cpu / us["filter"],
    }  # fmt: skip


def _us_per_signal(call: Callable[[], object], device: torch.device, count: int) -> float:
    call()
    call()
    return 1e6 * bench.percentile(bench.time_each(call, device, TURNS), 50) / count


def _overlap(
    source: torch.Tensor,
    target: torch.Tensor,
    template: torch.Tensor,
    matched_filter: Filter,
    streams: tuple[torch.cuda.Stream, torch.cuda.Stream],
) -> None:
    """Filter in chunks on two streams: while one stream computes, the other copies. The current stream waits for both."""
    current = torch.cuda.current_stream()
    for stream in streams:
        stream.wait_stream(current)
    for number, (begin, end) in enumerate(zip(source.chunk(CHUNKS), target.chunk(CHUNKS), strict=True)):
        with torch.cuda.stream(streams[number % 2]):
            end.copy_(matched_filter(begin.to(template.device, non_blocking=True), template), non_blocking=True)
    for stream in streams:
        current.wait_stream(stream)


def _time_plans(signals: torch.Tensor, length: int, device: torch.device) -> dict[str, float]:
    """Return the times of a transform that has to create its plan, and of one that does not.

    Events enclose the call, so they include the CPU's work.
    """
    cache = torch.backends.cuda.cufft_plan_cache[device.index or 0]
    cache.clear()
    first, second = bench.time_each(lambda: torch.fft.rfft(signals, length), device, 2)
    return {"plan_first_ms": 1e3 * first, "plan_again_ms": 1e3 * second, "plans_kept": cache.size}
