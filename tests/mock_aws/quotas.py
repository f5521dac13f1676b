"""Service Quotas: the limits of the account, the same in every region. They can be set and read, and increases can be
requested.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.mock_aws.call import Call, RefusalError

if TYPE_CHECKING:
    from tests.mock_aws.state import State

LIMITS = {  # by service and code: what the quota counts, and the account's default limit
    ("ec2", "L-DB2E81BA"): ("Running On-Demand G and VT instances", 64),
    ("ec2", "L-3819A6DF"): ("All G and VT Spot Instance Requests", 64),
    ("ec2", "L-417A185B"): ("Running On-Demand P instances", 0),
    ("ec2", "L-C4BD4855"): ("All P5 Spot Instance Requests", 0),
    ("ec2", "L-1216C47A"): ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 32),
    ("ec2", "L-34B43A08"): ("All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 32),
    ("vpc", "L-F678F1CE"): ("VPCs per Region", 5),
}


@dataclass
class Quotas:
    """The limits that a test has set, in vCPUs, and every request for an increase."""

    values: dict[str, float] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)


def get_quota(state: State, call: Call) -> Mapping[str, Any]:
    """Return a limit."""
    quota = _describe(call)
    _, value = LIMITS[quota["ServiceCode"], quota["QuotaCode"]]
    with state.quotas.lock:
        return {"Quota": {**quota, "Value": state.quotas.values.get(quota["QuotaCode"], value), "Adjustable": True}}


def request_increase(state: State, call: Call) -> Mapping[str, Any]:
    """Open a request for an increase. There can be only one for each limit and region."""
    with state.quotas.lock:
        if _find_requests(state, call):
            text = "Only one open service quota increase request is allowed per quota."
            raise RefusalError("ResourceAlreadyExistsException", text)
        request = {
            **_describe(call),
            "Id": uuid.uuid4().hex,
            "DesiredValue": float(call.params["DesiredValue"]),
            "Status": "PENDING",
            "Created": time.time(),
            "LastUpdated": time.time(),
        }
        state.quotas.requests.append(request)
    return {"RequestedQuota": request}


def list_requests(state: State, call: Call) -> Mapping[str, Any]:
    """Return the requests about a limit, all of which are open."""
    with state.quotas.lock:
        return {"RequestedQuotas": _find_requests(state, call) if call.params.get("Status") in {None, "PENDING"} else []}


def _find_requests(state: State, call: Call) -> list[dict[str, Any]]:
    arn = _describe(call)["QuotaArn"]
    return [request for request in state.quotas.requests if request["QuotaArn"] == arn]


def _describe(call: Call) -> dict[str, Any]:
    service, code = str(call.params.get("ServiceCode")), str(call.params.get("QuotaCode"))
    if (service, code) not in LIMITS:
        raise RefusalError("NoSuchResourceException", "The request failed because the specified service quota does not exist.")
    name, _ = LIMITS[service, code]
    arn = f"arn:aws:servicequotas:{call.region}:123456789012:{service}/{code}"
    return {"ServiceCode": service, "QuotaArn": arn, "QuotaCode": code, "QuotaName": name, "Unit": "None"}
