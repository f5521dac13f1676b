"""The limits of an account: how many vCPUs may run, by market and family; how many networks there may be."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit: its code and name, and what this account has unless a test says otherwise.

    `families` are the beginnings of the instance types that it counts, `spot` their market; a limit without families counts
    something else.
    """

    code: str
    name: str
    value: float
    families: tuple[str, ...] = ()
    spot: bool = False
    service: str = "ec2"


_GRAPHICS = ("g", "vt")
_STANDARD = ("a", "c", "d", "h", "i", "m", "r", "t", "z")
_OF_THEIR_OWN = ("dl", "f", "hpc", "inf", "mac", "trn", "u", "x")  # each has a limit, and none of them is here
_STANDARD_NAME = "Standard (A, C, D, H, I, M, R, T, Z)"
LIMITS = (
    Limit(code="L-DB2E81BA", name="Running On-Demand G and VT instances", value=64, families=_GRAPHICS),
    Limit(code="L-3819A6DF", name="All G and VT Spot Instance Requests", value=64, families=_GRAPHICS, spot=True),
    Limit(code="L-417A185B", name="Running On-Demand P instances", value=0, families=("p",)),
    Limit(code="L-C4BD4855", name="All P5 Spot Instance Requests", value=0, families=("p5",), spot=True),
    Limit(
        code="L-7212CCBC",
        name="All P4, P3 and P2 Spot Instance Requests",
        value=0,
        families=("p2", "p3", "p4"),
        spot=True,
    ),
    Limit(
        code="L-1216C47A",
        name=f"Running On-Demand {_STANDARD_NAME} instances",
        value=32,
        families=_STANDARD,
    ),
    Limit(
        code="L-34B43A08",
        name=f"All {_STANDARD_NAME} Spot Instance Requests",
        value=32,
        families=_STANDARD,
        spot=True,
    ),
    Limit(code="L-F678F1CE", name="VPCs per Region", value=5, service="vpc"),
)
BY_CODE = {limit.code: limit for limit in LIMITS}
OPEN = {"PENDING", "CASE_OPENED"}


def limit_of(instance_type: str, *, spot: bool) -> Limit | None:
    """The limit that counts for a launch; None for a type that no limit here covers. The longer beginning wins."""
    if instance_type.startswith(_OF_THEIR_OWN):
        return None
    fitting = [
        (len(family), limit)
        for limit in LIMITS
        for family in limit.families
        if limit.spot is spot and instance_type.startswith(family)
    ]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


@dataclass
class Quotas:
    """The limits, the same in every region, and every request to raise one."""

    set: dict[str, float] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def limit(self, code: str) -> float:
        """How much of it there may be."""
        with self.lock:
            return self.set.get(code, BY_CODE[code].value)

    def change(self, code: str, value: float) -> None:
        """Set a limit. Raises KeyError where there is no such limit."""
        BY_CODE[code]
        with self.lock:
            self.set[code] = value

    def close(self, code: str) -> None:
        """Close every open request for this limit."""
        with self.lock:
            for request in self.requests:
                if request["QuotaCode"] == code and request["Status"] in OPEN:
                    request["Status"] = "CASE_CLOSED"
                    request["LastUpdated"] = time.time()
