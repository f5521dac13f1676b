"""What the mock charges: US dollars an hour on demand, and what part of it each zone asks on the spot market."""

from __future__ import annotations

REGIONS = {  # region: what it costs beside us-east-1
    "us-east-1": ("US East (N. Virginia)", 1.0),
    "us-east-2": ("US East (Ohio)", 1.0),
    "us-west-2": ("US West (Oregon)", 1.0),
    "eu-west-1": ("EU (Ireland)", 1.12),
    "eu-central-1": ("EU (Frankfurt)", 1.25),
}
ON_DEMAND = {
    "t3.micro": 0.0104,
    "t3.medium": 0.0416,
    "g4dn.xlarge": 0.526,
    "g4dn.2xlarge": 0.752,
    "g4dn.4xlarge": 1.204,
    "g4dn.8xlarge": 2.176,
    "g4dn.12xlarge": 3.912,
    "g5.xlarge": 1.006,
    "g5.2xlarge": 1.212,
    "g6.xlarge": 0.8048,
    "g6.2xlarge": 0.9776,
    "g6e.xlarge": 1.861,
    "g6e.2xlarge": 2.24208,
    "p3.2xlarge": 3.06,  # still in the price list, in no zone any more
    "p4d.24xlarge": 21.957642,
    "p5.4xlarge": 6.88,
    "p5.48xlarge": 55.04,
}
GP3_GB_MONTH = 0.08

_SPOT_SHARE = {"a": 0.41, "b": 0.38, "c": 0.35, "d": 0.44, "e": 0.47, "f": 0.40}


def on_demand(instance_type: str, region: str) -> float | None:
    """US dollars an hour; None where the mock has no price."""
    if instance_type not in ON_DEMAND or region not in REGIONS:
        return None
    return round(ON_DEMAND[instance_type] * REGIONS[region][1], 6)


def spot(instance_type: str, zone: str) -> float | None:
    """US dollars an hour in a zone (`us-east-2a`); None where the mock has no price."""
    price = on_demand(instance_type, zone[:-1])
    return None if price is None else round(price * _SPOT_SHARE.get(zone[-1], 0.4), 4)
