"""A lab that is made without Terraform: single calls create the resources of a stack in a second, together with the lab's
record.

To the account, it is a lab of the course whose Terraform state was lost.
"""

from __future__ import annotations

import getpass
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.labs.aws import ledger
from gpucourse.labs.destroy import DestroyRequest, DestroyResult, destroy, survey
from gpucourse.model.deployment import AwsDeployment, Cloud
from gpucourse.model.node import Inventory, Node
from gpucourse.workspace import deployments, regions
from gpucourse.workspace.locate import open_workspace
from tests.mock_aws.account import REGION
from tests.mock_aws.asking import SPOT, describe_instance, launch
from tests.system.aws.learner import CIDR, CloudLearner

USER, ACCOUNT = "ubuntu", "123456789012"


def context(learner: CloudLearner) -> Context:
    """Return the context of the learner's commands."""
    environ = learner.environment
    return Context(workspace=open_workspace(learner.workspace), folders=find_course(environ), environ=environ)


def run_destroy(learner: CloudLearner, which: DestroyRequest, *, discard: bool = False) -> DestroyResult:
    """Run `destroy` without its question, and return the result."""
    learner_context = context(learner)
    return destroy(learner_context, survey(learner_context, which), discard=discard)


def utc(hours: float) -> str:
    """Return the time in so many hours, in the form of a record."""
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat(timespec="seconds")


def identity(learner: CloudLearner) -> str:
    """Return the workspace's id. Create the workspace if there is none."""
    return open_workspace(learner.workspace).id


def tags_of(learner: CloudLearner, stack: str, **options: str) -> dict[str, str]:
    """Return the tags of this workspace's resources."""
    owner_tags = {
        "Project": "gpucourse",
        "Course": identity(learner),
        "Stack": stack,
        "Module": "3",
        "Owner": getpass.getuser(),
    }
    return {**owner_tags, "Expires": utc(4), **options}


def make_tag_parameters(tags: dict[str, str], *kinds: str) -> dict[str, Any]:
    """Return the tags in the form of EC2's parameters."""
    entries = [{"Key": key, "Value": value} for key, value in tags.items()]
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": entries} for kind in kinds]}


def network(learner: CloudLearner, tags: dict[str, str], region: str = "") -> tuple[str, str]:
    """Return a new network with these tags, with its subnet and its security group."""
    ec2 = learner.account.client("ec2", region)
    name = f"gpucourse-{tags['Stack']}"
    vpc = ec2.create_vpc(CidrBlock="10.77.0.0/16", **make_tag_parameters(tags, "vpc"))["Vpc"]["VpcId"]
    zone = f"{region or REGION}a"
    subnet = ec2.create_subnet(
        VpcId=vpc, CidrBlock="10.77.1.0/24", AvailabilityZone=zone, **make_tag_parameters(tags, "subnet")
    )
    gateway = ec2.create_internet_gateway(**make_tag_parameters(tags, "internet-gateway"))["InternetGateway"][
        "InternetGatewayId"
    ]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    group = ec2.create_security_group(
        VpcId=vpc, GroupName=name, Description="lab", **make_tag_parameters(tags, "security-group")
    )["GroupId"]
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": CIDR, "Description": "SSH"}]}
    among = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[ssh, among])
    return str(subnet["Subnet"]["SubnetId"]), str(group)


def instance(learner: CloudLearner, tags: dict[str, str], **options: Any) -> str:
    """Launch an instance with these tags, without a network of its own."""
    return _launch(learner, tags, **options)


def lab(
    learner: CloudLearner, *, module: str = "3", gpu: str = "t4", nodes: int = 1, spot: bool = False, hours: float = 4
) -> AwsDeployment:
    """Return a ready lab with its record."""
    from gpucourse.remote.keys import ensure_client_key

    workspace = open_workspace(learner.workspace)
    paths = workspace.paths
    uid = f"{workspace.id}-{secrets.token_hex(6)}"
    tags = tags_of(learner, uid, Module=module, Expires=utc(hours))
    regions.note(paths, REGION)
    ec2 = learner.account.client("ec2")
    subnet, group = network(learner, tags)
    key = ensure_client_key(paths.client_key)
    name = f"gpucourse-{uid}"
    ec2.import_key_pair(KeyName=name, PublicKeyMaterial=key.encode(), **make_tag_parameters(tags, "key-pair"))
    card = {"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group], "AssociatePublicIpAddress": True}
    market = {"InstanceMarketOptions": SPOT} if spot else {}
    common = {"KeyName": name, "NetworkInterfaces": [card], "InstanceInitiatedShutdownBehavior": "terminate", **market}
    instance_ids = [_launch(learner, {**tags, "Node": f"node{index}"}, "g4dn.2xlarge", **common) for index in range(nodes)]
    stack = deployments.stack_name(module, "aws", gpu)
    deployment = AwsDeployment(
        stack=stack,
        uid=uid,
        module=module,
        title="Parallel computing",
        template="parallel",
        phase="ready",
        created=utc(0),
        updated=utc(0),
        nodes_wanted=nodes,
        inventory=Inventory(
            stack=stack, nodes=tuple(_node(learner, index, instance_id) for index, instance_id in enumerate(instance_ids))
        ),
        cloud=Cloud(
            account=ACCOUNT,
            region=REGION,
            zone=f"{REGION}a",
            instance_type="g4dn.2xlarge",
            gpu=gpu,
            market="spot" if spot else "on-demand",
            owner=getpass.getuser(),
            ssh_cidr=CIDR,
            ttl_hours=hours,
            expires=tags["Expires"],
            usd_per_hour="1.54",
        ),
    )
    deployments.save(paths, deployment)
    ledger.settle(context(learner).paths, Account(REGION, learner.environment), uid)
    return deployment


def read_record(learner: CloudLearner) -> AwsDeployment:
    """Return the lab's record from disk."""
    deployment = deployments.load_as(open_workspace(learner.workspace).paths, "03-aws-t4", AwsDeployment)
    assert deployment is not None
    return deployment


def cut_off(learner: CloudLearner) -> None:
    """Change the lab's record so that no node can be reached."""
    file = learner.workspace / ".gpucourse/deployments/03-aws-t4.json"
    file.write_text(file.read_text().replace("ssh_proxy.py", "no_such_proxy.py"))


def state_folder(learner: CloudLearner, instance_id: str) -> Path:
    """Return the folder with a node's marks."""
    return Path(learner.account.computer(instance_id)["root"]) / "var/lib/gpucourse"


def ids(learner: CloudLearner) -> list[str]:
    """Return the ids of the existing instances, in the order of their launch."""
    return [resource.id for resource in learner.list_resources("instance")]


def _launch(learner: CloudLearner, tags: dict[str, str], instance_type: str = "g4dn.xlarge", **options: Any) -> str:
    return launch(learner.account, instance_type, **make_tag_parameters(tags, "instance", "volume"), **options)


def _node(learner: CloudLearner, index: int, instance_id: str) -> Node:
    computer = learner.account.computer(instance_id)
    description = describe_instance(learner.account, instance_id)
    from gpucourse.workspace.settings import read_settings

    settings = read_settings(learner.workspace / "gpucourse.yaml")
    return Node(
        name=f"node{index}",
        role="worker" if index else "head",
        address=description["PublicIpAddress"],
        port=22,
        private_address=description["PrivateIpAddress"],
        user=USER,
        gpus=1,
        instance_type="g4dn.2xlarge",
        python=settings.node_python,
        mode="aws",
        host_key=computer["host_key"],
        proxy=settings.ssh_proxy_command,
    )
