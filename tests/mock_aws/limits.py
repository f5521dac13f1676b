"""The limits of an account: how many vCPUs may run, by market and family; how many networks there may be."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit: its code and name, and what this account has unless a test says otherwise."""

    code: str
    name: str
    value: float
    service: str = "ec2"


LIMITS = (
    Limit(code="L-DB2E81BA", name="Running On-Demand G and VT instances", value=64),
    Limit(code="L-3819A6DF", name="All G and VT Spot Instance Requests", value=64),
    Limit(code="L-417A185B", name="Running On-Demand P instances", value=0),
    Limit(code="L-C4BD4855", name="All P5 Spot Instance Requests", value=0),
    Limit(code="L-1216C47A", name="Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", value=32),
    Limit(code="L-34B43A08", name="All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", value=32),
    Limit(code="L-F678F1CE", name="VPCs per Region", value=5, service="vpc"),
)
BY_CODE = {limit.code: limit for limit in LIMITS}


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
