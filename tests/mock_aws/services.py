"""The services that moto lacks: the function that answers each action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.mock_aws import quotas
from tests.mock_aws.call import Call
from tests.mock_aws.state import ACCOUNT_ID, State


def _get_plan(state: State, _call: Call) -> Mapping[str, Any]:
    """Return the plan of the account. An account on the Free plan may launch nothing that a GPU course needs."""
    return {"accountId": ACCOUNT_ID, "accountPlanType": state.plan, "accountPlanStatus": "ACTIVE"}


ACTIONS: dict[str, Callable[[State, Call], Mapping[str, Any]]] = {
    "freetier:GetAccountPlanState": _get_plan,
    "pricing:GetProducts": lambda _state, _call: {"FormatVersion": "aws_v1", "PriceList": []},
    "servicequotas:GetServiceQuota": quotas.get_quota,
    "servicequotas:RequestServiceQuotaIncrease": quotas.request_increase,
    "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota": quotas.list_requests,
}
"""The functions, by the action's name in a policy."""
