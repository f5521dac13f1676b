"""Solve 9.8: compute utilisation from a model's FLOPs, and goodput by recording with each checkpoint how many hours of training
it contains."""

from __future__ import annotations

from itertools import pairwise
from typing import Any


def mfu(job: dict[str, Any]) -> float:
    """Return the model FLOPs utilisation in percent."""
    attention = 12 * job["layers"] * job["attention_width"] * job["sequence"] / (2 if job["is_causal"] else 1)
    flops = 6 * job["active_parameters"] + attention
    return 100 * flops * job["tokens_per_s"] / (1e12 * job["peak_tflops"])


def hfu(mfu_percent: float, recomputed: float) -> float:
    """Return the hardware FLOPs utilisation in percent."""
    return mfu_percent * (1 + recomputed / 3)


def goodput_percent(log: list[dict[str, Any]]) -> float:
    """Return the kept hours in percent. Each saved state has its hours of training, and a load continues from them."""
    kept, saved = 0.0, {0: 0.0}
    for entry, following in pairwise(log):
        if entry["event"] == "trains":
            kept = saved[entry["step"]] + following["hour"] - entry["hour"]
        elif entry["event"] == "saves":
            saved[entry["step"]] = kept
    return 100 * kept / (log[-1]["hour"] - log[0]["hour"])
