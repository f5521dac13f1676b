"""The regions that an account may use."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.availability_zones_and_regions import AvailabilityZonesAndRegions

from tests.mock_aws.state import State

_OPENED_ON_REQUEST = {"af-south-1", "ap-southeast-3", "eu-south-1"}  # moto has them open for everybody
_OTHER_PARTITIONS = ("us-gov-", "cn-")


def install(_state: State) -> None:
    """See each function."""
    show_those_that_are_open()


def show_those_that_are_open() -> None:
    """moto shows all that there are, the government's and China's as well: 38 to look into. AWS shows the 17 that every account
    may use, and with AllRegions those of its partition."""

    def describe_regions(self: Any) -> ActionResult:
        self.error_on_dryrun()
        regions = self.ec2_backend.describe_regions(self._get_param("RegionNames", []))
        shown = [region for region in regions if not region.name.startswith(_OTHER_PARTITIONS)]
        if not self._get_bool_param("AllRegions"):
            shut = {region.name for region in shown if region.opt_in_status == "not-opted-in"} | _OPENED_ON_REQUEST
            shown = [region for region in shown if region.name not in shut]
        return ActionResult({"Regions": shown})

    AvailabilityZonesAndRegions.describe_regions = describe_regions  # type: ignore[method-assign]
