"""A solution of 4.3: it computes the goodput of each round.

The smallest batch size wins whose middle half reaches that of the best.
"""

from __future__ import annotations

from math import ceil
from statistics import median


def goodput(requests: list[dict], seconds: float, ttft_limit_ms: float, tpot_limit_ms: float) -> float:
    """Return the tokens per second of the requests that keep both limits."""
    return sum(request["tokens"] for request in requests if is_good(request, ttft_limit_ms, tpot_limit_ms)) / seconds


def is_good(request: dict, ttft_limit_ms: float, tpot_limit_ms: float) -> bool:
    """Return whether a request was answered within both limits."""
    ttft_ms, tpot_ms = request["ttft_ms"], request["tpot_ms"]
    return ttft_ms is not None and ttft_ms <= ttft_limit_ms and (tpot_ms is None or tpot_ms <= tpot_limit_ms)


def choose_batch(
    rounds: dict[int, list[tuple[list[dict], float]]], ttft_limit_ms: float, tpot_limit_ms: float, percent: float
) -> int | None:
    """Return the smallest batch size that keeps the promise and is as good as the best."""
    rates = {}
    for batch, measured in rounds.items():
        good = [is_good(request, ttft_limit_ms, tpot_limit_ms) for requests, _ in measured for request in requests]
        if 100 * sum(good) >= percent * len(good):
            rates[batch] = [goodput(requests, seconds, ttft_limit_ms, tpot_limit_ms) for requests, seconds in measured]
    if not rates:
        return None
    best = max(rates, key=lambda batch: median(rates[batch]))
    slow_round = quarter(rates[best], 25)  # the rounds between the quarters are not affected by an accident
    return min(batch for batch in rates if quarter(rates[batch], 75) >= slow_round)


def quarter(values: list[float], percent: float) -> float:
    """Return the smallest value that at least `percent` percent of the values do not exceed."""
    return sorted(values)[ceil(len(values) * percent / 100) - 1]
