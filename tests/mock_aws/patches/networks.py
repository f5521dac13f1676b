"""Networks."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.vpcs import VPCBackend

from tests.mock_aws import errors
from tests.mock_aws.limits import NETWORKS
from tests.mock_aws.refusal_error import RefusalError
from tests.mock_aws.state import State


def install(state: State) -> None:
    """See each function."""
    limit_how_many_there_are(state)


def limit_how_many_there_are(state: State) -> None:
    """moto makes as many as one likes; AWS five in a region, the default one among them."""
    usual = VPCBackend.create_vpc

    def create(self: Any, *given: Any, **named: Any) -> Any:
        if len(self.vpcs) >= state.quotas.limit(self.region_name, NETWORKS):
            raise RefusalError("VpcLimitExceeded", errors.KNOWN["VpcLimitExceeded"][1])
        return usual(self, *given, **named)

    VPCBackend.create_vpc = create  # type: ignore[method-assign]
