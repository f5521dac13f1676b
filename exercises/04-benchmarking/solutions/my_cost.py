"""A solution of 4.4: the price of a day divided by the tokens of a day."""

from __future__ import annotations


def usd_per_million(
    usd_per_hour: float,
    gpus: int,
    tokens_per_s: float,
    utilisation_percent: float,
    interruptions_per_day: float,
    minutes_lost: float,
) -> float:
    """Return dollars per million tokens."""
    lost_s = interruptions_per_day * minutes_lost * 60
    busy_s = (24 * 3600 - lost_s) * utilisation_percent / 100
    tokens = busy_s * tokens_per_s * gpus
    return usd_per_hour * 24 / tokens * 1_000_000


def most_interruptions(spot_usd_per_hour: float, on_demand_usd_per_hour: float, minutes_lost: float) -> float:
    """Return the interruptions a day at which spot and on demand cost the same."""
    share_that_works = spot_usd_per_hour / on_demand_usd_per_hour
    return (1 - share_that_works) * 24 * 60 / minutes_lost
