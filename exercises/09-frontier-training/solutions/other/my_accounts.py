"""Another solution of 9.8: forward first, then everything as multiples of it."""

from __future__ import annotations

from typing import Any


def mfu(job: dict[str, Any]) -> float:
    """Return the model FLOPs utilisation in percent."""
    keys = job["sequence"] * (0.5 if job["is_causal"] else 1.0)
    forward = 2 * job["active_parameters"] + job["layers"] * 2 * (2 * job["attention_width"] * keys)
    possible = job["peak_tflops"] * 1e12 / job["tokens_per_s"]
    return 3 * forward / possible * 100


def hfu(mfu_percent: float, recomputed: float) -> float:
    """Return the hardware FLOPs utilisation in percent."""
    forward = backward_half = mfu_percent / 3
    return forward + 2 * backward_half + recomputed * forward


def goodput(hours: float, interruptions: list[dict[str, float]]) -> float:
    """Return the percentage of time that became training."""
    kept = hours
    for one in interruptions:
        kept -= one["lost_hours"]
        kept -= one["down_hours"]
    return kept / hours * 100


def hours_between_failures(failures: int, days: float, gpus: int, job_gpus: int) -> float:
    """Return the hours between two failures of a job."""
    rate = failures / (gpus * days * 24)
    return 1 / (rate * job_gpus)
