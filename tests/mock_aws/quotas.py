"""Service Quotas: the limits of the account, which can be set, read, and requested to be raised."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.mock_aws.call import Call
from tests.mock_aws.limits import BY_CODE
from tests.mock_aws.refusal_error import RefusalError

if TYPE_CHECKING:
    from tests.mock_aws.state import State


def get_quota(state: State, call: Call) -> Mapping[str, Any]:
    """Return a limit."""
    code = _check_code(call)
    return {"Quota": {**_describe(call.region, code), "Value": state.quotas.limit(code), "Adjustable": True}}


def request_increase(state: State, call: Call) -> Mapping[str, Any]:
    """Open a request to raise a limit; one for each limit and region."""
    code, value = _check_code(call), float(call.params["DesiredValue"])
    with state.quotas.lock:
        if any((request["QuotaCode"], request["Region"]) == (code, call.region) for request in state.quotas.requests):
            raise RefusalError(
                "ResourceAlreadyExistsException", "Only one open service quota increase request is allowed per quota."
            )
        request = {
            **_describe(call.region, code),
            "Id": uuid.uuid4().hex,
            "DesiredValue": value,
            "Status": "PENDING",
            "Created": time.time(),
            "LastUpdated": time.time(),
            "Region": call.region,
        }
        state.quotas.requests.append(request)
    return {"RequestedQuota": request}


def list_requests(state: State, call: Call) -> Mapping[str, Any]:
    """List the open requests for a limit."""
    code, status = call.params.get("QuotaCode"), call.params.get("Status")
    with state.quotas.lock:
        requests = [
            request
            for request in state.quotas.requests
            if (request["QuotaCode"], request["Region"]) == (code, call.region) and status in {None, request["Status"]}
        ]
    return {"RequestedQuotas": requests}


def _describe(region: str, code: str) -> dict[str, Any]:
    limit = BY_CODE[code]
    return {
        "ServiceCode": limit.service,
        "QuotaArn": f"arn:aws:servicequotas:{region}:123456789012:{limit.service}/{code}",
        "QuotaCode": code,
        "QuotaName": limit.name,
        "Unit": "None",
    }


def _check_code(call: Call) -> str:
    code = str(call.params.get("QuotaCode", ""))
    if code not in BY_CODE or BY_CODE[code].service != call.params.get("ServiceCode"):
        raise RefusalError("NoSuchResourceException", "The request failed because the specified service quota does not exist.")
    return code
