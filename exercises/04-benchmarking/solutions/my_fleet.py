"""A solution of 4.4: it tries every offer with its fastest batch size, and every mix of instances for every hour."""

from __future__ import annotations

import math


def plan(offers: list[dict], demand: list[float], limit_ms: float, spot_share: float) -> dict | None:
    """Return the cheapest plan of all offers."""
    plans = []
    for offer in offers:
        speeds = {batch: speed for batch, (speed, tpot_ms) in offer["batches"].items() if tpot_ms <= limit_ms}
        if not speeds:
            continue
        batch = max(speeds, key=speeds.get)
        mixes = [cheapest_mix(offer, speeds[batch], tokens, spot_share) for tokens in demand]
        counts = {"on_demand": [steady for _, steady, _ in mixes], "spot": [spot for _, _, spot in mixes]}
        plans.append((sum(cost for cost, _, _ in mixes), {"gpu": offer["gpu"], "batch": batch, **counts}))
    return min(plans, key=lambda item: item[0])[1] if plans else None


def cheapest_mix(offer: dict, speed: float, tokens: float, spot_share: float) -> tuple[float, int, int]:
    """Return the price of an hour in dollars, and the numbers of on-demand and spot instances."""
    works = 1 - offer["interruptions_per_day"] * offer["minutes_lost"] / 1440
    mixes = []
    for steady in range(round_up((1 - spot_share) * tokens / speed), round_up(tokens / speed) + 1):
        spot = round_up(max(0, tokens - steady * speed) / (speed * works))
        mixes.append((steady * offer["usd_per_hour"] + spot * offer["spot_usd_per_hour"], steady, spot))
    return min(mixes)


def round_up(number: float) -> int:
    """Return the number rounded up to a whole one. A rounding error above a whole number does not count."""
    return math.ceil(number - 1e-9)
