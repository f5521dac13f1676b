"""What a rule may ask about a launch beyond the words of the request."""

from __future__ import annotations

from moto.ec2.models import ec2_backends

from tests.mock_aws.call import Call
from tests.mock_aws.state import ACCOUNT_ID, State


def of(state: State, call: Call) -> dict[str, str]:
    """The zone and instance type of a launch or a start; empty for anything else."""
    if call.service != "ec2":
        return {}
    if call.action == "RunInstances":
        return {"instance_type": str(call.params.get("InstanceType", "")), "zone": zone_of(call)}
    wanted = call.params.get("InstanceId.1")
    for _region, instance in state.instances() if wanted else ():
        if instance.id == wanted:
            return {"instance_type": instance.instance_type, "zone": instance.placement.zone or ""}
    return {}


def zone_of(call: Call) -> str:
    """Where a launch would go: the zone it names, or its subnet's."""
    if named := call.params.get("Placement.AvailabilityZone"):
        return str(named)
    subnet_id = call.params.get("SubnetId") or call.params.get("NetworkInterface.1.SubnetId")
    for subnets in ec2_backends[ACCOUNT_ID][call.region].subnets.values():
        if subnet_id in subnets:
            return str(subnets[subnet_id].availability_zone)
    return f"{call.region}a"
