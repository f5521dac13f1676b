"""The same as a ratio of times per sample, by sorting."""

from __future__ import annotations


def seconds_per_sample(training: dict) -> float:
    """Return the middle of the warm steps, over the samples of all ranks."""
    last: dict[int, float] = {}
    for row in sorted(training["rows"], key=lambda row: row["compute_s"] + row["communicate_s"]):
        last[row["step"]] = row["compute_s"] + row["communicate_s"]  # the longest of a step overwrites the others
    warm = sorted(seconds for step, seconds in last.items() if step not in range(training["warm_up_steps"]))
    middle = (warm[(len(warm) - 1) // 2] + warm[len(warm) // 2]) / 2
    return middle / (training["batch_per_rank"] * training["ranks"])


def compare(alone: dict, together: dict) -> tuple[float, float]:
    """Speed-up (times) and efficiency (percent) of the training `together` over `alone`."""
    times = seconds_per_sample(alone) / seconds_per_sample(together)
    return times, times / (together["ranks"] / alone["ranks"]) * 100
