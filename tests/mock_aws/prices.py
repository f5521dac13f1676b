"""What the mock charges: US dollars an hour on demand, and what part of it the spot market takes."""

from __future__ import annotations

REGIONS = {  # region: what it costs beside us-east-1
    "us-east-1": 1.0,
    "us-east-2": 1.0,
    "us-west-2": 1.0,
    "eu-west-1": 1.12,
    "eu-central-1": 1.25,
}
ON_DEMAND = {
    "t3.micro": 0.0104,
    "t3.medium": 0.0416,
    "g4dn.xlarge": 0.526,
    "g4dn.2xlarge": 0.752,
    "g5.xlarge": 1.006,
    "g5.2xlarge": 1.212,
    "g6.xlarge": 0.8048,
    "g6.2xlarge": 0.9776,
    "g6e.xlarge": 1.861,
    "g6e.2xlarge": 2.24208,
    "p5.4xlarge": 6.88,
}
GP3_GB_MONTH = 0.08
SPOT_SHARE = 0.4


def on_demand(instance_type: str, region: str) -> float | None:
    """Return US dollars an hour; None if the mock has no price."""
    if instance_type not in ON_DEMAND or region not in REGIONS:
        return None
    return round(ON_DEMAND[instance_type] * REGIONS[region], 6)
