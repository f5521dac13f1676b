"""RunInstances: create the disks of the image, and remember the options of the launch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.instances import InstanceResponse

from tests.mock_aws.call import RefusalError
from tests.mock_aws.patches import spot
from tests.mock_aws.patches.images import root_gb
from tests.mock_aws.state import State


def install(_state: State) -> None:
    """Complete a launch. A dry run only checks permissions, as on AWS."""
    usual = InstanceResponse.run_instances

    def run_instances(self: Any) -> ActionResult:
        if self._get_bool_param("DryRun"):
            return usual(self)
        _complete_disks(self)
        result = usual(self)
        reservation: Any = result.result
        _remember(self, reservation.instances)
        return result

    InstanceResponse.run_instances = run_instances  # type: ignore[method-assign]


def _complete_disks(self: Any) -> None:
    """Use the image's values for everything that the launch does not specify about the root disk. moto would create an 8 GB
    disk instead, or refuse.
    """
    image = self.ec2_backend.describe_images(ami_ids=[self._get_param("ImageId")])[0]
    disks = self.params.setdefault("BlockDeviceMappings", [])
    root = next((disk for disk in disks if disk.get("DeviceName") == image.root_device_name), None)
    if root is None:
        root = {"DeviceName": image.root_device_name}
        disks.append(root)
    ebs = root.setdefault("Ebs", {})
    size = root_gb(image)
    for name, value in (("VolumeSize", size), ("VolumeType", "gp3"), ("DeleteOnTermination", True)):
        ebs.setdefault(name, value)
    if int(ebs["VolumeSize"]) < size:
        snapshot = image.ebs_snapshot.id
        text = f"Volume of size {ebs['VolumeSize']}GB is smaller than snapshot '{snapshot}', expect size>= {size}GB"
        raise RefusalError("InvalidBlockDeviceMapping", text)


def _remember(self: Any, instances: Iterable[Any]) -> None:
    """Store the options of the launch: the placement group, without which Terraform sees drift, the market, and that its
    resources end with the instance.
    """
    tags = self._parse_tag_specification().get("spot-instances-request", {})
    for instance in instances:
        instance.placement.group_name = self._get_param("Placement.GroupName", "")
        for disk in self.params.get("BlockDeviceMappings", []):
            if disk["DeviceName"] == instance.root_device_name:
                volume = self.ec2_backend.volumes[instance.block_device_mapping[disk["DeviceName"]].volume_id]
                volume.throughput = int(disk["Ebs"].get("Throughput", 125))
        for nic in instance.nics.values():
            nic.delete_on_termination = True
        if self._get_param("InstanceMarketOptions.MarketType") == "spot":
            behaviour = self._get_param("InstanceInitiatedShutdownBehavior")
            instance.instance_initiated_shutdown_behavior = (
                behaviour or "terminate"
            )  # moto's own default is for on-demand instances
            spot.create_request(instance, self._get_param("InstanceMarketOptions.SpotOptions", {}), tags)
