"""Your part of 4.4: what a million tokens cost, with idle hours, with several GPUs, and on spot capacity that may be lost.

You will learn    which hours you pay for and which produce tokens; up to how many interruptions a day spot is cheaper
You will produce  a `usd_per_million` for any service, and the break-even of spot
Try it            gpucourse try 4.4
Your part         the bodies of `usd_per_million` and `most_interruptions`; keep their names and parameters
Reading           modules/04-benchmarking/lesson-2-price.md, "What a million tokens cost"
"""

from __future__ import annotations


def usd_per_million(
    usd_per_hour: float,
    gpus: int,
    tokens_per_s: float,
    utilisation_percent: float,
    interruptions_per_day: float,
    minutes_lost: float,
) -> float:
    """Return the dollars per million tokens of a service that runs day and night.

    `usd_per_hour` is the price of the whole instance. Each of its `gpus` GPUs generates `tokens_per_s` tokens a second while it
    has work. The instance is interrupted `interruptions_per_day` times a day. Each time, you pay for `minutes_lost` minutes
    without any tokens. The service has work for `utilisation_percent` percent of the remaining time.
    """
    raise NotImplementedError("usd_per_million: what does a day cost, and how many tokens does it produce?")


def most_interruptions(spot_usd_per_hour: float, on_demand_usd_per_hour: float, minutes_lost: float) -> float:
    """Return the interruptions a day at which a token costs the same on spot as on demand.

    On demand is never interrupted. `minutes_lost` is defined as above.
    """
    raise NotImplementedError("most_interruptions: in which share of the day must spot still generate tokens?")
