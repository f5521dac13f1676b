"""Which function answers which action of a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.mock_aws.call import Call
from tests.mock_aws.services import freetier, pricing, quotas
from tests.mock_aws.state import State

Handler = Callable[[State, Call], Mapping[str, Any]]

ACTIONS: dict[str, Handler] = {**quotas.ACTIONS, **pricing.ACTIONS, **freetier.ACTIONS}
"""By the name that a policy uses: `servicequotas:GetServiceQuota`."""
