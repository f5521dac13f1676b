"""A solution of 9.8."""

from __future__ import annotations

from typing import Any


def mfu(job: dict[str, Any]) -> float:
    """Return the model FLOPs utilisation in percent."""
    attention = 12 * job["layers"] * job["attention_width"] * job["sequence"] / (2 if job["is_causal"] else 1)
    flops = 6 * job["active_parameters"] + attention
    return 100 * flops * job["tokens_per_s"] / (1e12 * job["peak_tflops"])


def hfu(mfu_percent: float, recomputed: float) -> float:
    """Return the hardware FLOPs utilisation in percent."""
    return mfu_percent * (1 + recomputed / 3)


def goodput(hours: float, interruptions: list[dict[str, float]]) -> float:
    """Return the percentage of time that became training."""
    lost = sum(one["lost_hours"] + one["down_hours"] for one in interruptions)
    return 100 * (hours - lost) / hours


def hours_between_failures(failures: int, days: float, gpus: int, job_gpus: int) -> float:
    """Return the hours between two failures of a job."""
    return 24 * days * gpus / failures / job_gpus
