"""Another solution of 3.4: it divides the times per sample, and finds medians by sorting."""

from __future__ import annotations

import statistics


def seconds_per_sample(training: dict) -> float:
    """Return the median seconds of the warm steps, divided by the number of samples of all ranks."""
    last: dict[int, float] = {}
    for row in sorted(training["rows"], key=lambda row: row["compute_s"] + row["communicate_s"]):
        last[row["step"]] = row["compute_s"] + row["communicate_s"]  # the longest time of a step overwrites the others
    warm = sorted(seconds for step, seconds in last.items() if step not in range(training["warm_up_steps"]))
    middle = (warm[(len(warm) - 1) // 2] + warm[len(warm) // 2]) / 2
    return middle / (training["batch_per_rank"] * training["ranks"])


def compare(alone: dict, together: dict) -> tuple[float, float]:
    """Return the speed-up (times) and the efficiency (percent) of the training `together` compared with `alone`."""
    times = seconds_per_sample(alone) / seconds_per_sample(together)
    return times, times / (together["ranks"] / alone["ranks"]) * 100


def waiting(training: dict) -> float:
    """Return the percentage of a median step for which a rank has finished computing before the slowest one has."""
    shares = []
    for step in {row["step"] for row in training["rows"] if row["step"] >= training["warm_up_steps"]}:
        rows = [row for row in training["rows"] if row["step"] == step]
        latest = max(row["compute_s"] for row in rows)
        idle = statistics.fmean(latest - row["compute_s"] for row in rows)
        shares.append(idle / max(row["compute_s"] + row["communicate_s"] for row in rows))
    return 100 * statistics.median(shares)
