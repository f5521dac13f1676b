"""Which plan the account is on. A Free-plan account may launch nothing that a GPU course needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tests.mock_aws.call import Call

if TYPE_CHECKING:
    from tests.mock_aws.state import State

_SIX_MONTHS_S = 182 * 86400


def _plan(state: State, _call: Call) -> Mapping[str, Any]:
    free = {"accountPlanExpirationDate": time.time() + _SIX_MONTHS_S} if state.plan == "FREE" else {}
    return {
        "accountId": "123456789012",
        "accountPlanType": state.plan,
        "accountPlanStatus": "ACTIVE",
        "accountPlanRemainingCredits": {"amount": 100.0, "unit": "USD"},
        **free,
    }


ACTIONS: dict[str, Callable[[State, Call], Mapping[str, Any]]] = {"freetier:GetAccountPlanState": _plan}
