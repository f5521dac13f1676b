"""Solve the capacities of 8.8 by the residual time of the service that is under way when a request arrives."""

from __future__ import annotations

import math
from statistics import fmean


def wait_s(per_s: float, service_s: list[float]) -> float:
    """Return the residual time of the current service, plus the service times of all requests in front."""
    use = per_s * fmean(service_s)
    if not use < 1:
        return math.inf
    rest = fmean(time * time for time in service_s) / fmean(service_s) / 2 if any(service_s) else 0.0
    return use * rest / (1 - use)


def count_inside(per_s: float, ttft_s: float, tpot_s: float, answer: int) -> float:
    """Return the requests that wait for the first token, and those that generate."""
    return per_s * ttft_s + per_s * tpot_s * (answer - 1)


def tokens_held(per_s: float, ttft_s: float, tpot_s: float, prompt: int, answer: int) -> float:
    """Return the tokens of the prompts of all requests inside, and of half an answer for each request that generates."""
    reading = per_s * tpot_s * (answer - 1)
    return count_inside(per_s, ttft_s, tpot_s, answer) * prompt + reading * answer / 2


def usd_per_million(usd_per_hour: float, per_s: float, answer: int, good_percent: float) -> float:
    """Return the dollars per second, divided by the millions of good tokens per second."""
    millions_per_s = per_s * (good_percent / 100) * answer / 1e6
    return math.inf if millions_per_s == 0 else usd_per_hour / 3600 / millions_per_s


def engines_needed(per_s: float, service_s: list[float], max_wait_s: float, held: float, cache_tokens: int) -> int:
    """Return the larger number of two: by memory, and by the highest use at which the wait is short enough."""
    mean = fmean(service_s)
    rest = fmean(time * time for time in service_s) / mean / 2 if mean else 0.0
    use = max_wait_s / (max_wait_s + rest)  # use * rest / (1 - use) equals max_wait_s
    return max(1, math.ceil(held / cache_tokens), math.ceil(per_s * mean / use - 1e-9))
