"""The limits of an account: how many vCPUs may run, by market and family; how many networks there may be."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit: its code and name, and what this account has unless a test says otherwise.

    `families` are the first letters of the instance types that it counts, `spot` their market; a limit without families
    counts something else.
    """

    code: str
    name: str
    value: float
    families: str = ""
    spot: bool = False
    service: str = "ec2"


LIMITS = (
    Limit(code="L-DB2E81BA", name="Running On-Demand G and VT instances", value=64, families="g"),
    Limit(code="L-3819A6DF", name="All G and VT Spot Instance Requests", value=64, families="g", spot=True),
    Limit(code="L-417A185B", name="Running On-Demand P instances", value=0, families="p"),
    Limit(code="L-C4BD4855", name="All P5 Spot Instance Requests", value=0, families="p", spot=True),
    Limit(code="L-1216C47A", name="Running On-Demand Standard instances", value=32, families="cmrt"),
    Limit(code="L-34B43A08", name="All Standard Spot Instance Requests", value=32, families="cmrt", spot=True),
    Limit(code="L-F678F1CE", name="VPCs per Region", value=5, service="vpc"),
)
BY_CODE = {limit.code: limit for limit in LIMITS}


def limit_of(instance_type: str, *, spot: bool) -> Limit | None:
    """Return the limit that counts for a launch; None for a type that no limit here covers."""
    return next((limit for limit in LIMITS if instance_type[0] in limit.families and limit.spot is spot), None)


@dataclass
class Quotas:
    """The limits, the same in every region, and every request to raise one."""

    set: dict[str, float] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def limit(self, code: str) -> float:
        """Return how much of it there may be."""
        with self.lock:
            return self.set.get(code, BY_CODE[code].value)

    def change(self, code: str, value: float) -> None:
        """Set a limit. Raises KeyError if there is no such limit."""
        BY_CODE[code]
        with self.lock:
            self.set[code] = value
