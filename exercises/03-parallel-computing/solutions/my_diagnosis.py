"""A solution of 3.7: it compares medians, and takes the range from the 20th to the 80th percentile as their uncertainty."""

from __future__ import annotations

import statistics


def _describe(times: list[float]) -> tuple[float, float]:
    """Return the median and the spread."""
    ordered = sorted(times)
    spread = ordered[int(0.8 * (len(ordered) - 1))] - ordered[int(0.2 * (len(ordered) - 1))]
    return statistics.median(ordered), spread


def _serial_share(seconds: float, workers: int) -> float:
    """Return the serial share f in T(n) = T(1) (f + (1 - f) / n). `seconds` is T(n) / T(1)."""
    return (seconds - 1 / workers) / (1 - 1 / workers)


def diagnose(curve: list[dict]) -> dict[str, object]:
    """Return the efficiency, the losses, the bottleneck, and whether the overhead grows."""
    first, last = curve[0], curve[-1]
    strong = last["samples"] == first["samples"]
    one, one_spread = _describe(first["step_s"])
    step, step_spread = _describe(last["step_s"])
    silent, silent_spread = _describe(last["silent_s"])
    share = last["samples"] / first["samples"] / last["workers"]  # of one worker's work, for each worker
    losses = {"communication": step - silent, "slower computing": silent - share * one}
    smaller, larger = sorted(losses, key=lambda name: losses[name])
    noise = step_spread + silent_spread + share * one_spread
    named = losses[larger] > noise and losses[larger] - losses[smaller] > noise
    grows = False
    intervals = []
    for point in curve[1:]:
        seconds, spread = _describe(point["step_s"])
        uncertainty = (spread / seconds + one_spread / one) / 2
        low, high = (seconds / one * (1 + sign * uncertainty) for sign in (-1, 1))
        intervals.append((_serial_share(low, point["workers"]), _serial_share(high, point["workers"])))
    grows = intervals[-1][0] > intervals[0][1]
    return {
        "efficiency": 100 * share * one / step,
        "losses_ms": {name: 1e3 * seconds for name, seconds in losses.items()},
        "bottleneck": larger if named else None,
        "overhead_grows": grows if strong else None,
    }
