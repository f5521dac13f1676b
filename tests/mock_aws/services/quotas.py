"""Service Quotas: the limits of the account, which can be set, read, and asked to be raised."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tests.mock_aws.call import Call
from tests.mock_aws.limits import BY_CODE, OPEN
from tests.mock_aws.patches import service_roles
from tests.mock_aws.refusal_error import RefusalError

if TYPE_CHECKING:
    from tests.mock_aws.state import State


_SERVICES = {"ec2": "Amazon Elastic Compute Cloud (Amazon EC2)", "vpc": "Amazon Virtual Private Cloud (Amazon VPC)"}


def _quota(region: str, code: str, value: float) -> dict[str, Any]:
    return {
        "ServiceCode": BY_CODE[code].service,
        "ServiceName": _SERVICES[BY_CODE[code].service],
        "QuotaArn": f"arn:aws:servicequotas:{region}:123456789012:{BY_CODE[code].service}/{code}",
        "QuotaCode": code,
        "QuotaName": BY_CODE[code].name,
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
        "QuotaAppliedAtLevel": "ACCOUNT",
    }


def _check_code(call: Call) -> str:
    code = str(call.params.get("QuotaCode", ""))
    if code not in BY_CODE or BY_CODE[code].service != call.params.get("ServiceCode"):
        raise RefusalError("NoSuchResourceException", "The request failed because the specified service quota does not exist.")
    return code


def _get(state: State, call: Call) -> Mapping[str, Any]:
    code = _check_code(call)
    return {"Quota": _quota(call.region, code, state.quotas.limit(code))}


def _request(state: State, call: Call) -> Mapping[str, Any]:
    code, wanted = _check_code(call), float(call.params["DesiredValue"])
    service_roles.have(state, service_roles.QUOTAS)
    with state.quotas.lock:
        if wanted <= state.quotas.limit(code):
            raise RefusalError(
                "IllegalArgumentException", "You must provide a quota value greater than the current quota value."
            )
        if any(r["QuotaCode"] == code and r["_region"] == call.region and r["Status"] in OPEN for r in state.quotas.requests):
            raise RefusalError(
                "ResourceAlreadyExistsException", "Only one open service quota increase request is allowed per quota."
            )
        request = {
            **{key: value for key, value in _quota(call.region, code, 0).items() if key not in {"Value", "Adjustable"}},
            "Id": uuid.uuid4().hex,
            "DesiredValue": wanted,
            "Status": "PENDING",
            "Created": time.time(),
            "LastUpdated": time.time(),
            "Requester": "{}",
            "_region": call.region,
        }
        state.quotas.requests.append(request)
    return {"RequestedQuota": _drop_private(request)}


def _history(state: State, call: Call) -> Mapping[str, Any]:
    code, status = call.params.get("QuotaCode"), call.params.get("Status")
    with state.quotas.lock:
        requests = [
            _drop_private(request)
            for request in state.quotas.requests
            if request["_region"] == call.region
            and code in {None, request["QuotaCode"]}
            and status in {None, request["Status"]}
        ]
    return {"RequestedQuotas": requests}


def _drop_private(request: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in request.items() if not key.startswith("_")}


ACTIONS: dict[str, Callable[[State, Call], Mapping[str, Any]]] = {
    "servicequotas:GetServiceQuota": _get,
    "servicequotas:RequestServiceQuotaIncrease": _request,
    "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota": _history,
}
