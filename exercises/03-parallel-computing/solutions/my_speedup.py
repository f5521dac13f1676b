"""Speed-up and efficiency from the raw times of all ranks."""

from __future__ import annotations

from statistics import median


def samples_per_s(training: dict) -> float:
    """Return the samples of all ranks divided by the median of the warm steps, each as long as its slowest rank."""
    steps: dict[int, list[float]] = {}
    for row in training["rows"]:
        if row["step"] >= training["warm_up_steps"]:
            steps.setdefault(row["step"], []).append(row["compute_s"] + row["communicate_s"])
    step_s = median(max(seconds) for seconds in steps.values())
    return training["ranks"] * training["batch_per_rank"] / step_s


def compare(alone: dict, together: dict) -> tuple[float, float]:
    """Return the speed-up (times) and the efficiency (percent) of the training `together` compared with `alone`."""
    speedup = samples_per_s(together) / samples_per_s(alone)
    return speedup, 100 * speedup / together["ranks"]
