"""Another solution of 4.4: the cost of an hour at full load, divided by the share of time with work."""

from __future__ import annotations

MINUTES_OF_A_DAY = 1440


def usd_per_million(
    usd_per_hour: float,
    gpus: int,
    tokens_per_s: float,
    utilisation_percent: float,
    interruptions_per_day: float,
    minutes_lost: float,
) -> float:
    """Return dollars per million tokens."""
    at_full_load = usd_per_hour / gpus / (tokens_per_s * 3600 / 1e6)
    availability = 1 - interruptions_per_day * minutes_lost / MINUTES_OF_A_DAY
    return at_full_load / availability / (utilisation_percent / 100)


def most_interruptions(spot_usd_per_hour: float, on_demand_usd_per_hour: float, minutes_lost: float) -> float:
    """Return the interruptions a day at which the function above gives the same cost for spot and on demand."""
    low, high = 0.0, MINUTES_OF_A_DAY / minutes_lost
    for _ in range(200):
        middle = (low + high) / 2
        if usd_per_million(spot_usd_per_hour, 1, 1, 100, middle, minutes_lost) < on_demand_usd_per_hour / 3600 * 1e6:
            low = middle
        else:
            high = middle
    return low
