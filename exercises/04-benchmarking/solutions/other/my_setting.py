"""Another solution of 4.3: it removes the late requests first, and goes through the batch sizes once, from the smallest."""

from __future__ import annotations

from math import inf


def goodput(requests: list[dict], seconds: float, ttft_limit_ms: float, tpot_limit_ms: float) -> float:
    """Return the useful tokens per second."""
    late = [
        request
        for request in requests
        if (inf if request["ttft_ms"] is None else request["ttft_ms"]) > ttft_limit_ms
        or (request["tpot_ms"] or 0.0) > tpot_limit_ms
    ]
    return (sum(request["tokens"] for request in requests) - sum(request["tokens"] for request in late)) / seconds


def _middle(speeds: list[float]) -> float:
    ordered = sorted(speeds)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _spread(speeds: list[float]) -> float:
    """Return the median distance of a round from the middle one, which a single accident hardly changes."""
    return _middle([abs(speed - _middle(speeds)) for speed in speeds])


def choose_batch(
    rounds: dict[int, list[tuple[list[dict], float]]], ttft_limit_ms: float, tpot_limit_ms: float, percent: float
) -> int | None:
    """Return the smallest batch size that keeps the promise and is no further from the best than the spreads explain."""
    speeds = {}
    for batch in sorted(rounds):
        count = sum(len(requests) for requests, _ in rounds[batch])
        late = sum(
            goodput([request | {"tokens": 1}], 1.0, ttft_limit_ms, tpot_limit_ms) == 0.0
            for requests, _ in rounds[batch]
            for request in requests
        )
        if 100 * late <= (100 - percent) * count:
            speeds[batch] = [goodput(requests, seconds, ttft_limit_ms, tpot_limit_ms) for requests, seconds in rounds[batch]]
    highest = max(speeds.values(), key=_middle, default=[])
    for batch, own in speeds.items():
        if _middle(highest) - _middle(own) <= 1.5 * (_spread(own) + _spread(highest)):
            return batch
    return None
