"""Measure the times inside a call with PyTorch's profiler, and find the highest rate at which a device can compute."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # keeps the profiler from reporting its own start and end

import gpus
import torch
from torch.profiler import ProfilerActivity, profile, supported_activities

ROWS = 50
NAME = 60  # characters


@dataclass(frozen=True)
class Profile:
    """`rows`: the operations with the longest self time; `text`: the whole table.

    `gpu_busy_percent` is the share of the wall-clock time in which kernels ran. If the profiler has no GPU times, it is None,
    and the rows have the processor's times.
    """

    rows: list[dict[str, object]]
    text: str
    gpu_busy_percent: float | None


def take_profile(call: Callable[[], object], device: torch.device, *, top: int, trace: Path | None = None) -> Profile:
    """Return the profile of one call, which should be warm. If `trace` is a file, write a Chrome trace to it."""
    on_gpu = device.type == "cuda"
    activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA} if on_gpu else {ProfilerActivity.CPU}
    with profile(activities=supported_activities() & activities) as profiler:
        start = time.perf_counter()
        call()
        if on_gpu:
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - start
    events = profiler.key_averages()
    on_device = any(event.self_device_time_total for event in events)  # false if the driver does not permit counting
    key = "self_device_time_total" if on_device else "self_cpu_time_total"
    total = sum(getattr(event, key) for event in events)
    rows = [
        {
            "operation": event.key[:NAME], "calls": event.count, "self_ms": getattr(event, key) / 1e3,
            "self_percent": 100 * getattr(event, key) / total,
        }
        for event in sorted(events, key=lambda event: getattr(event, key), reverse=True)[:top]
    ]  # fmt: skip
    if trace is not None:
        profiler.export_chrome_trace(str(trace))
    busy = 100 * total / 1e6 / seconds if on_device else None
    return Profile(rows, events.table(sort_by=key, row_limit=ROWS) + "\n", busy)


def find_peak_tflops(device: torch.device, dtype: torch.dtype) -> float | None:
    """Return a GPU's highest rate for products of a format, from its data sheet, or None for a GPU that is not in the table.

    For a CPU, return a rate above that of any processor with the same number of cores.
    """
    if device.type != "cuda":
        return gpus.cpu_limit_tflops(os.cpu_count() or 1)
    gpu = gpus.find(torch.cuda.get_device_name(device))
    if gpu is None:
        return None
    return {torch.float32: gpu.fp32, torch.float16: gpu.fp16, torch.bfloat16: gpu.bf16}[dtype]


def limit_samples_per_s(samples_per_s: float, model: torch.nn.Module, device: torch.device, dtype: torch.dtype) -> float | None:
    """Return the figure, or None if the device cannot be so fast. Training takes at least 4 FLOP per weight and sample.

    The forward pass takes 2, and the weight gradients take 2. The input gradients add to that.
    """
    peak = find_peak_tflops(device, dtype)
    weights = sum(weight.numel() for weight in model.parameters() if weight.dim() == 2)
    return None if peak is not None and 4 * weights * samples_per_s > peak * 1e12 else samples_per_s
