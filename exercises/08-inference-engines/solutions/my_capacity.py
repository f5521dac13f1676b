"""Solve the capacities of 8.8 by the formulas of the lesson."""

from __future__ import annotations


def wait_s(per_s: float, service_s: list[float]) -> float:
    """Return the rate times the mean square of the service times, divided by twice the share of idle time."""
    mean = sum(service_s) / len(service_s)
    square = sum(time**2 for time in service_s) / len(service_s)
    use = per_s * mean
    if use >= 1:
        return float("inf")
    return per_s * square / (2 * (1 - use))


def count_inside(per_s: float, ttft_s: float, tpot_s: float, answer: int) -> float:
    """Return the arrival rate times the time that a request is in the service."""
    return per_s * (ttft_s + (answer - 1) * tpot_s)


def tokens_held(per_s: float, ttft_s: float, tpot_s: float, prompt: int, answer: int) -> float:
    """Return rate times the tokens that a request holds, added up over its time."""
    return per_s * (ttft_s * prompt + (answer - 1) * tpot_s * (prompt + answer / 2))


def usd_per_million(usd_per_hour: float, per_s: float, answer: int, good_percent: float) -> float:
    """Return the price of an hour, divided by its good tokens."""
    good = per_s * 3600 * answer * good_percent / 100
    return usd_per_hour / good * 1e6 if good else float("inf")


def engines_needed(per_s: float, service_s: list[float], max_wait_s: float, held: float, cache_tokens: int) -> int:
    """Return the first number of engines that is enough for both limits."""
    count = 1
    while wait_s(per_s / count, service_s) > max_wait_s or held > count * cache_tokens:
        count += 1
    return count
