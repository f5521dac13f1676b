"""A solution of 4.4 that adds instances one at a time, for every batch size."""

from __future__ import annotations


def plan(offers, demand, limit_ms, spot_share):
    """Return the cheapest plan of all offers and batch sizes."""
    best = None
    for offer in offers:
        for batch, (speed, tpot) in offer["batches"].items():
            if tpot > limit_ms:
                continue
            days = [hour(offer, speed, tokens, spot_share) for tokens in demand]
            cost = sum(steady * offer["usd_per_hour"] + spot * offer["spot_usd_per_hour"] for steady, spot in days)
            if best is None or cost < best[0]:
                steady, spot = zip(*days, strict=True)
                best = cost, {"gpu": offer["gpu"], "batch": batch, "on_demand": list(steady), "spot": list(spot)}
    return best and best[1]


def hour(offer, speed, tokens, spot_share):
    """Return the cheapest pair (instances on demand, instances on spot) that generates an hour's tokens."""
    effective = speed * (1440 - offer["interruptions_per_day"] * offer["minutes_lost"]) / 1440
    steady = 0
    while steady * speed + 1e-9 < tokens * (1 - spot_share):
        steady += 1
    pairs = []
    while True:
        spot = 0
        while steady * speed + spot * effective + 1e-9 < tokens:
            spot += 1
        pairs.append((steady, spot))
        if spot == 0:
            return min(pairs, key=lambda pair: pair[0] * offer["usd_per_hour"] + pair[1] * offer["spot_usd_per_hour"])
        steady += 1
