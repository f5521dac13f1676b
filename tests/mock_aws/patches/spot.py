"""The spot market: the request behind each spot instance."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.spot_requests import SpotInstanceRequest, SpotRequestBackend
from moto.ec2.utils import random_spot_request_id

from tests.mock_aws.state import State


def install(_state: State) -> None:
    """Keep a cancelled request in descriptions. Its instance continues to run."""

    def cancel(self: Any, request_ids: list[str]) -> list[SpotInstanceRequest]:
        requests = [self.spot_instance_requests[request_id] for request_id in request_ids]
        for request in requests:
            request.state = "cancelled"
        return requests

    SpotRequestBackend.cancel_spot_instance_requests = cancel  # type: ignore[method-assign]


def create_request(instance: Any, options: dict[str, Any], tags: dict[str, str]) -> None:
    """Create the request of a spot instance that RunInstances launched, which moto does not create. Without it, the provider
    reads no spot options and wants to replace the instance.
    """
    backend = instance.ec2_backend
    request: Any = object.__new__(_LaunchedRequest)
    request._instance = instance
    SpotInstanceRequest.__init__(
        request,
        backend,
        random_spot_request_id(),
        options.get("MaxPrice") or "1.0",
        instance.image_id,
        options.get("SpotInstanceType") or "one-time",
        valid_from=None,
        valid_until=None,
        launch_group=None,
        availability_zone_group=None,
        key_name=instance.key_name,
        security_groups=[],
        user_data=None,
        instance_type=instance.instance_type,
        placement=instance.placement.zone,
        kernel_id=None,
        ramdisk_id=None,
        monitoring_enabled=False,
        subnet_id=instance.subnet_id,
        tags={"spot-instances-request": tags},
        spot_fleet_id=None,
        instance_interruption_behaviour=options.get("InstanceInterruptionBehavior") or "terminate",
    )
    backend.spot_instance_requests[request.id] = request
    instance.spot_instance_request_id = request.id


class _LaunchedRequest(SpotInstanceRequest):
    """A request whose instance exists already."""

    _instance: Any

    def launch_instance(self) -> Any:
        return self._instance
