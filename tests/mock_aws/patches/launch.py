"""RunInstances, as strict as AWS: plan, image, type and zone, disks, limits, the market; and it remembers what it was told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.responses.instances import InstanceResponse

from tests.mock_aws import errors
from tests.mock_aws.limits import limit_of
from tests.mock_aws.patches import spot
from tests.mock_aws.patches.books import list_instances
from tests.mock_aws.patches.images import root_gb
from tests.mock_aws.patches.placement import groups_of
from tests.mock_aws.refusal_error import RefusalError
from tests.mock_aws.state import State

_COUNTED = {"pending", "running"}


def install(state: State) -> None:
    """See each function."""
    check_and_complete_a_launch(state)
    check_the_limit_at_a_start(state)


def check_and_complete_a_launch(state: State) -> None:
    """moto launches whatever it is asked for. A trial run tells of permissions only, as on AWS."""
    usual = InstanceResponse.run_instances

    def run_instances(self: Any) -> ActionResult:
        if self._get_bool_param("DryRun"):
            return usual(self)
        on_spot = self._get_param("InstanceMarketOptions.MarketType") == "spot"
        kind = self._get_param("InstanceType", "m1.small")
        _check_plan(state, kind)
        _check_type_and_zone(self, kind)
        _check_group(self)
        _complete_disks(self)
        _check_limit(state, self, [kind] * int(self._get_param("MinCount", 1)), on_spot=on_spot)
        result = usual(self)
        reservation: Any = result.result
        _remember(self, reservation.instances, on_spot=on_spot)
        return result

    InstanceResponse.run_instances = run_instances  # type: ignore[method-assign]


def check_the_limit_at_a_start(state: State) -> None:
    """A stopped instance counts for nothing, so its start may be one too many."""
    usual = InstanceResponse.start_instances

    def start_instances(self: Any) -> ActionResult:
        wanted = self.ec2_backend.get_multi_instances_by_id(self._get_param("InstanceIds", []))
        kinds = [instance.instance_type for instance in wanted if instance.state == "stopped"]
        _check_limit(state, self, kinds, on_spot=False)
        return usual(self)

    InstanceResponse.start_instances = start_instances  # type: ignore[method-assign]


def _check_plan(state: State, kind: str) -> None:
    if state.plan == "FREE" and not INSTANCE_TYPES.get(kind, {}).get("FreeTierEligible"):
        _, message = errors.KNOWN["InvalidParameterCombination"]
        raise RefusalError("InvalidParameterCombination", message)


def _check_type_and_zone(self: Any, kind: str) -> None:
    zone = self._get_param("Placement.AvailabilityZone")
    cards = self._get_param("NetworkInterfaces", [])
    subnet_id = self._get_param("SubnetId") or next((card.get("SubnetId") for card in cards), None)
    if subnet_id:
        zone = self.ec2_backend.get_subnet(subnet_id).availability_zone
    offers = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(self.region, [])
    offered = [offer["Location"] for offer in offers if offer["InstanceType"] == kind]
    if not offered:
        raise RefusalError("InvalidParameterValue", f"The following supplied instance types do not exist: [{kind}]")
    if zone and zone not in offered:
        _, message = errors.KNOWN["Unsupported"]
        others = ", ".join(sorted(offered))
        raise RefusalError("Unsupported", f"{message.format(instance_type=kind, zone=zone)} Zones that have it: {others}.")


def _check_group(self: Any) -> None:
    group = self._get_param("Placement.GroupName")
    if group and group not in groups_of(self.ec2_backend):
        raise RefusalError("InvalidPlacementGroup.Unknown", f"The placement group '{group}' is unknown.")


def _complete_disks(self: Any) -> None:
    """What is not said of the root disk comes from the image: moto makes an 8 GB disk instead, or refuses."""
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


def _check_limit(state: State, self: Any, kinds: Iterable[str], *, on_spot: bool) -> None:
    together: dict[str, list[str]] = {}
    for kind in kinds:
        if counted := limit_of(kind, spot=on_spot):
            together.setdefault(counted.code, []).append(kind)
    for instance in list_instances(self.ec2_backend):
        counted = limit_of(instance.instance_type, spot=on_spot)
        if instance.state in _COUNTED and (instance.lifecycle == "spot") is on_spot and counted and counted.code in together:
            together[counted.code].append(instance.instance_type)
    for code, types in together.items():
        limit = state.quotas.limit(code)
        if sum(map(_vcpus, types)) > limit:
            error = "MaxSpotInstanceCountExceeded" if on_spot else "VcpuLimitExceeded"
            status, message = errors.KNOWN[error]
            raise RefusalError(error, message.format(limit=int(limit)), status)


def _vcpus(kind: str) -> int:
    return int(INSTANCE_TYPES[kind]["VCpuInfo"]["DefaultVCpus"])


def _remember(self: Any, instances: Iterable[Any], *, on_spot: bool) -> None:
    """The group, without which Terraform sees drift; the market; that what a launch makes ends with its instance."""
    tags = self._parse_tag_specification().get("spot-instances-request", {})
    for instance in instances:
        instance.placement.group_name = self._get_param("Placement.GroupName", "")
        for disk in self.params.get("BlockDeviceMappings", []):
            if disk["DeviceName"] == instance.root_device_name:
                volume = self.ec2_backend.volumes[instance.block_device_mapping[disk["DeviceName"]].volume_id]
                volume.throughput = int(disk["Ebs"].get("Throughput", 125))
        for nic in instance.nics.values():
            nic.delete_on_termination = True
        if instance.instance_type.startswith("t3."):
            instance.cpu_credits = self._get_param("CreditSpecification.CpuCredits") or "unlimited"
        if on_spot:
            asked = self._get_param("InstanceInitiatedShutdownBehavior")
            instance.instance_initiated_shutdown_behavior = asked or "terminate"  # moto's own default is that of on demand
            spot.stand_behind(instance, self._get_param("InstanceMarketOptions.SpotOptions", {}), tags)
