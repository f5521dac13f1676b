"""A solution of 4.3: percentiles by nearest rank, TTFT and TPOT, and the smallest batch size whose middle half of rounds
reaches that of the fastest."""

from __future__ import annotations

from math import ceil
from statistics import median


def percentile(values: list[float], percent: float) -> float:
    """Return the smallest value that at least `percent` percent of the values do not exceed."""
    return sorted(values)[ceil(len(values) * percent / 100) - 1]


def latencies(sent_s: float, arrived_s: list[float]) -> tuple[float, float | None]:
    """Return TTFT and TPOT in milliseconds."""
    first, last, gaps = arrived_s[0], arrived_s[-1], len(arrived_s) - 1
    return (first - sent_s) * 1000, (last - first) * 1000 / gaps if gaps else None


def choose_batch(rounds: dict[int, list[float]], tpots_ms: dict[int, list[float]], limit_ms: float) -> int | None:
    """Return the smallest batch size within the limit that is as good as the fastest."""
    batches = [batch for batch in rounds if percentile(tpots_ms[batch], 99) <= limit_ms]
    if not batches:
        return None
    fastest = max(batches, key=lambda batch: median(rounds[batch]))
    slow_round = percentile(rounds[fastest], 25)  # the rounds between the quarters are not affected by an accident
    return min(batch for batch in batches if percentile(rounds[batch], 75) >= slow_round)
