"""The spot market: its prices, and the request that is behind each spot instance."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS
from moto.ec2.models.spot_requests import SpotInstanceRequest, SpotRequestBackend
from moto.ec2.responses.spot_instances import SpotInstances
from moto.ec2.utils import random_spot_request_id

from tests.mock_aws import prices
from tests.mock_aws.refusal_error import RefusalError
from tests.mock_aws.state import State


def install(_state: State) -> None:
    """See each function."""
    tell_prices_zone_by_zone()
    cancel_without_forgetting()


def tell_prices_zone_by_zone() -> None:
    """moto's price is $0.00001 everywhere, dated 2006, for a product of another name than the one that is asked for."""

    def history(self: Any) -> ActionResult:
        types = self._get_param("InstanceTypes", [])
        zone = self._get_param("AvailabilityZone")
        products = self._get_param("ProductDescriptions", [])
        filters = self._filters_from_querystring()
        types = types or filters.get("instance-type", [])
        zones = [zone] if zone else filters.get("availability-zone", [])
        products = products or filters.get("product-description", [])
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        entries = [
            {
                "InstanceType": offer["InstanceType"],
                "ProductDescription": product,
                "SpotPrice": f"{price * factor:.6f}",
                "AvailabilityZone": offer["Location"],
                "Timestamp": now,
            }
            for offer in INSTANCE_TYPE_OFFERINGS["availability-zone"].get(self.region, [])
            if (not types or offer["InstanceType"] in types) and (not zones or offer["Location"] in zones)
            for product, factor in (("Linux/UNIX", 1.0), ("Windows", 1.8))
            if (not products or product in products) and (price := prices.spot(offer["InstanceType"], offer["Location"]))
        ]
        return ActionResult({"SpotPriceHistory": entries})

    SpotInstances.describe_spot_price_history = history  # type: ignore[method-assign]


def cancel_without_forgetting() -> None:
    """A cancelled request can still be described; its instance runs on."""

    def cancel(self: Any, request_ids: list[str]) -> list[SpotInstanceRequest]:
        for request_id in request_ids:
            if request_id not in self.spot_instance_requests:
                raise RefusalError(
                    "InvalidSpotInstanceRequestID.NotFound", f"The spot instance request ID '{request_id}' does not exist"
                )
        requests = [self.spot_instance_requests[request_id] for request_id in request_ids]
        for request in requests:
            request.state = "cancelled"
        return requests

    SpotRequestBackend.cancel_spot_instance_requests = cancel  # type: ignore[method-assign]


def stand_behind(instance: Any, options: dict[str, Any], tags: dict[str, str]) -> None:
    """The request of a spot instance that was launched by RunInstances, which moto does not make; without it the provider reads
    no spot options back and wants to replace the instance."""
    backend = instance.ec2_backend
    request: Any = object.__new__(_LaunchedRequest)
    request._instance = instance
    price = options.get("MaxPrice") or str(prices.on_demand(instance.instance_type, backend.region_name) or 1.0)
    SpotInstanceRequest.__init__(
        request,
        backend,
        random_spot_request_id(),
        price,
        instance.image_id,
        options.get("SpotInstanceType") or "one-time",
        None,
        None,
        None,
        None,
        instance.key_name,
        [],
        None,
        instance.instance_type,
        instance.placement.zone,
        None,
        None,
        False,
        instance.subnet_id,
        {"spot-instances-request": tags},
        None,
        options.get("InstanceInterruptionBehavior") or "terminate",
    )
    backend.spot_instance_requests[request.id] = request
    instance.spot_instance_request_id = request.id


class _LaunchedRequest(SpotInstanceRequest):
    """One whose instance is there already."""

    _instance: Any

    def launch_instance(self) -> Any:
        return self._instance
