"""A solution of 3.4: the slowest rank determines the time of a step, and the median of the warm steps counts."""

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


def waiting(training: dict) -> float:
    """Return the percentage of a median step that a rank waits for slower ones. The last rank to arrive only sends."""
    shares = []
    for step in {row["step"] for row in training["rows"]} - set(range(training["warm_up_steps"])):
        rows = [row for row in training["rows"] if row["step"] == step]
        send_s = min(row["communicate_s"] for row in rows)
        step_s = max(row["communicate_s"] + row["compute_s"] for row in rows)
        shares.append(sum(row["communicate_s"] - send_s for row in rows) / len(rows) / step_s)
    return 100 * median(shares)
