"""Your part of 4.4: rent the GPUs of a service for a day: which card, which batch size, and how many on spot.

You will learn    why neither the cheapest hour nor the cheapest token decides; what idle hours and interruptions cost
You will produce  a plan for any offers and any demand; the run compares what it costs with two simpler plans
Try it            gpucourse try 4.4
Your part         the body of `plan`; keep its name and parameters
Reading           modules/04-benchmarking/lesson-2-price.md, "What a million tokens cost"
"""

from __future__ import annotations


def plan(offers: list[dict], demand: list[float], limit_ms: float, spot_share: float) -> dict | None:
    """Return the cheapest plan for a day: {"gpu": "L4", "batch": 32, "on_demand": [...], "spot": [...]}. Return None if no
    offer meets the limit.

    The service runs on one kind of GPU with one batch size. "on_demand" and "spot" have the number of instances in each of the
    24 hours. Instances start and stop at full hours, and each hour is paid for in full.

    `offers`: {"gpu", "usd_per_hour", "spot_usd_per_hour", "interruptions_per_day", "minutes_lost", "batches"}. An instance has
    one GPU. "batches" has the measured (tokens/s, TPOT in ms) of an instance for each batch size. An instance on spot is
    interrupted `interruptions_per_day` times. Each time, `minutes_lost` minutes are paid for and produce no tokens.
    `demand`: the tokens/s that users ask for in each hour. On average over the hour, the service must generate at least that
    many.
    `limit_ms`: TPOT may be at most this.
    `spot_share`: at most this share of an hour's demand may depend on spot; instances on demand alone must serve the rest.
    """
    raise NotImplementedError("plan: what does one GPU cost in one hour, if you know how many instances that hour needs?")
