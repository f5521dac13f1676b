"""Solve 9.8 with multiples of the forward pass's FLOPs, and with a list of the saved states."""

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


def goodput_percent(log: list[dict[str, Any]]) -> float:
    """Return the percentage from a list of (step, hours). Loading a state removes all later entries."""
    history, since = [(0, 0.0)], None
    for entry in log:
        if since is not None:
            history.append((entry["step"], history[-1][1] + entry["hour"] - since))
            since = None
        if entry["event"] == "trains":
            while history[-1][0] > entry["step"]:
                history.pop()
            since = entry["hour"]
    return history[-1][1] / (log[-1]["hour"] - log[0]["hour"]) * 100
