"""The regions that an account may use."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.availability_zones_and_regions import AvailabilityZonesAndRegions

from tests.mock_aws.state import State

_OPEN = {"us-east-1", "us-east-2", "us-west-2", "eu-central-1", "eu-west-1"}


def install(_state: State) -> None:
    """Show only a few regions as enabled. moto shows all 38 regions, each of which would be scanned."""

    def describe_regions(self: Any) -> ActionResult:
        self.error_on_dryrun()
        regions = self.ec2_backend.describe_regions(self._get_param("RegionNames", []))
        everything = self._get_bool_param("AllRegions")
        return ActionResult({"Regions": [region for region in regions if everything or region.name in _OPEN]})

    AvailabilityZonesAndRegions.describe_regions = describe_regions  # type: ignore[method-assign]
