"""Another solution of 4.3: count the values that are not larger, and go through the batch sizes once, from the smallest."""

from __future__ import annotations

from itertools import pairwise


def percentile(values: list[float], percent: float) -> float:
    """Return the smallest value that at least `percent` percent of the values do not exceed."""
    within = [limit for limit in values if 100 * sum(value <= limit for value in values) >= percent * len(values)]
    return min(within)


def latencies(sent_s: float, arrived_s: list[float]) -> tuple[float, float | None]:
    """Return TTFT and TPOT in milliseconds."""
    gaps = [1e3 * (later - earlier) for earlier, later in pairwise(arrived_s)]
    return 1e3 * arrived_s[0] - 1e3 * sent_s, sum(gaps) / len(gaps) if gaps else None


def _middle(speeds: list[float]) -> float:
    ordered = sorted(speeds)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _spread(speeds: list[float]) -> float:
    """Return the median distance of a round from the middle one, which a single accident hardly changes."""
    return _middle([abs(speed - _middle(speeds)) for speed in speeds])


def choose_batch(rounds: dict[int, list[float]], tpots_ms: dict[int, list[float]], limit_ms: float) -> int | None:
    """Return the smallest batch size within the limit whose distance from the fastest is no more than the spreads explain."""
    fastest = None
    for batch, speeds in rounds.items():
        if percentile(tpots_ms[batch], 99) <= limit_ms and (fastest is None or _middle(speeds) > _middle(rounds[fastest])):
            fastest = batch
    if fastest is None:
        return None
    for batch in sorted(rounds):
        if percentile(tpots_ms[batch], 99) <= limit_ms:
            doubt = 1.5 * (_spread(rounds[batch]) + _spread(rounds[fastest]))
            if _middle(rounds[fastest]) - _middle(rounds[batch]) <= doubt:
                return batch
    return None
