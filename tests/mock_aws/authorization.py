"""The permissions that a call needs from IAM: for each resource that it uses or creates, the action, the resource's name, and
the condition keys.

A table from AWS (`tests/iam_table.py`) says which types of resources and which condition keys each action has. The resources of
these types, and their tags, are read from the call and from the state of the account.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from moto.ec2.models import ec2_backends
from moto.efs.models import efs_backends

from tests.mock_aws.call import Call
from tests.mock_aws.patches.placement import groups_of
from tests.mock_aws.permissions import Permission, policy_names
from tests.mock_aws.state import ACCOUNT_ID

TABLE = Path(__file__).parents[1] / "data" / "iam_actions.json"
_ID = re.compile(r"([a-z]+)-[0-9a-f]{8,}")
_TYPES = {
    "ami": "image",
    "eipalloc": "elastic-ip",
    "eni": "network-interface",
    "fs": "file-system",
    "i": "instance",
    "igw": "internet-gateway",
    "key": "key-pair",
    "pg": "placement-group",
    "rtb": "route-table",
    "sg": "security-group",
    "sgr": "security-group-rule",
    "sir": "spot-instances-request",
    "snap": "snapshot",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
}
_MAKING = ("Create", "Run", "Import", "Allocate", "Authorize")
_TAGGING = {"ec2": "ec2:CreateTags", "elasticfilesystem": "elasticfilesystem:TagResource", "scheduler": "scheduler:TagResource"}
# Calls that EFS makes on behalf of the caller, with the caller's permissions.
_DEPENDENT = {
    "elasticfilesystem:CreateMountTarget": ("DescribeSubnets", "DescribeNetworkInterfaces", "CreateNetworkInterface"),
    "elasticfilesystem:DeleteMountTarget": ("DeleteNetworkInterface",),
}
# AWS's service roles: a service creates its role on the account's first use, with the permissions of the caller.
_FIRST_USE = {
    "ec2:RunInstances": ("spot", "EC2Spot"),
    "elasticfilesystem:CreateMountTarget": ("elasticfilesystem", "AmazonElasticFileSystem"),
    "servicequotas:RequestServiceQuotaIncrease": ("servicequotas", "ServiceQuotas"),
}


@cache
def _read_table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def list_permissions(call: Call) -> list[Permission]:
    """Return every permission that the call needs. The caller holds the account's lock."""
    action = policy_names(call.service, call.action)
    permissions = list(_list_own_permissions(call, action))
    for name in _DEPENDENT.get(action, ()):
        permissions += _list_permissions_behind(call, f"ec2:{name}")
    if action in _FIRST_USE and (action != "ec2:RunInstances" or _is_spot(call)):
        service, suffix = _FIRST_USE[action]
        domain = f"{service}.amazonaws.com"
        role = f"arn:aws:iam::{ACCOUNT_ID}:role/aws-service-role/{domain}/AWSServiceRoleFor{suffix}"
        context = {"iam:AWSServiceName": domain}
        permissions.append(Permission(action="iam:CreateServiceLinkedRole", resource=role, context=context))
    if action == "scheduler:DeleteScheduleGroup":
        schedules = _arn(call, "scheduler", "schedule", f"{call.params['Name']}/*")
        permissions.append(Permission(action="scheduler:DeleteSchedule", resource=schedules))
    if action in {"scheduler:CreateSchedule", "scheduler:UpdateSchedule"}:
        context = {"iam:PassedToService": "scheduler.amazonaws.com"}
        permissions.append(Permission(action="iam:PassRole", resource=call.params["Target"]["RoleArn"], context=context))
    return permissions


def _list_own_permissions(call: Call, action: str) -> Iterator[Permission]:
    """Return the permissions for the action itself, and for the tags of the resources that it creates."""
    service, _, verb = action.partition(":")
    types = _read_table()["actions"].get(action)
    if types is None:  # the policy does not name it
        yield Permission(action=action)
        return
    new_tags = _tags_of_new(call)
    resources = _read_named(call)
    without = True
    for type_name, keys in types.items():
        kind = type_name.removesuffix("*")
        names = resources.get(kind, []) if kind else []
        if not names and kind and (type_name.endswith("*") or kind in new_tags):
            names = ["*"]
        for name in names:
            without = False
            if kind == "key-pair" and _is_gone(call, name):
                continue
            new = verb.startswith(_MAKING) and (name == "*" or kind in new_tags)
            tags = {} if name == "*" else _tags(call, kind, name)
            context = {f"aws:ResourceTag/{key}": value for key, value in tags.items()}
            request_tags = new_tags.get(kind, new_tags.get("", {})) if new or service == "scheduler" else {}
            context |= {f"aws:RequestTag/{key}": value for key, value in request_tags.items()}
            context |= _facts(call)
            yield Permission(
                action=action,
                resource=_arn(call, service, kind, name),
                context=_keep_known_keys(context, [*keys, *types.get("", [])]),
            )
    for kind in new_tags.keys() - {
        "",
        *(type_name.removesuffix("*") for type_name in types),
    }:  # a spot request, which the table lacks
        yield Permission(action=action, resource=_arn(call, service, kind, "*"))
    if without:
        tags = new_tags.get("", {})
        context = {f"aws:RequestTag/{key}": value for key, value in tags.items()} | _facts(call)
        yield Permission(action=action, context=_keep_known_keys(context, types.get("", [])))
    yield from _list_tag_permissions(call, service, verb, new_tags)


def _is_gone(call: Call, name: str) -> bool:
    """Return whether the call deletes a key pair that does not exist. Such a key pair has no tags to decide by, and EC2 reports
    success.
    """
    return call.action.startswith("Delete") and name not in ec2_backends[ACCOUNT_ID][call.region].key_pairs


def _list_tag_permissions(
    call: Call, service: str, verb: str, new_tags: Mapping[str, Mapping[str, str]]
) -> Iterator[Permission]:
    """Return the permissions for tagging new resources. Tagging is a separate action, under the name of the action that creates
    the resource.
    """
    if service not in _TAGGING or _TAGGING[service].endswith(f":{verb}"):
        return
    for kind, tags in new_tags.items():
        context = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
        context |= {"ec2:CreateAction": verb} if service == "ec2" else {f"{service}:CreateAction": verb}
        of = kind or {"elasticfilesystem": "file-system", "scheduler": "schedule-group"}[service]
        name = str(call.params["Name"]) if service == "scheduler" else "*"
        yield Permission(action=_TAGGING[service], resource=_arn(call, service, of, name), context=context)


def _list_permissions_behind(call: Call, action: str) -> Iterator[Permission]:
    """Return the permissions for the calls that EFS makes to EC2: it creates the network interface of a mount target without
    tags, in a subnet that has tags.
    """
    for type_name in _read_table()["actions"].get(action, {"": []}):
        kind = type_name.removesuffix("*")
        for name in _read_named(call).get(kind, ["*"] if type_name.endswith("*") else []):
            tags = {} if name == "*" else _tags(call, kind, name)
            context = {f"aws:ResourceTag/{key}": value for key, value in tags.items()}
            yield Permission(action=action, resource=_arn(call, "ec2", kind, name), context=context)
    if not any(_read_table()["actions"].get(action, {})):
        yield Permission(action=action)


def _read_named(call: Call) -> dict[str, list[str]]:
    """Return the resources that a call names, by type. The form of an id, or the parameter with the name, shows the type."""
    resources: dict[str, list[str]] = {}
    for value in _values(call.params):
        if (match := _ID.fullmatch(value)) and match[1] in _TYPES:
            resources.setdefault(_TYPES[match[1]], []).append(value)
    for parameter, value in call.params.items():
        if parameter == "KeyName":
            resources.setdefault("key-pair", []).append(str(value))
        elif parameter in {"GroupName", "Placement.GroupName"} and value:
            resources.setdefault("placement-group", []).append(str(value))
    resources |= _of_account(call)
    if call.service == "scheduler":
        resources |= _of_scheduler(call)
    elif call.service == "ssm":
        names = [call.params.get("Path"), call.params.get("Name"), *call.params.get("Names", [])]
        resources["parameter"] = [str(name) for name in names if name]
    elif call.service == "iam" and "RoleName" in call.params:
        resources["role"] = [str(call.params["RoleName"])]
    elif call.service == "servicequotas" and call.action.startswith("Request"):
        resources["quota"] = [f"{call.params['ServiceCode']}/{call.params['QuotaCode']}"]
    return resources


def _of_account(call: Call) -> dict[str, list[str]]:
    """Return the resources behind an association or a mount target in the call, according to the state of the account."""
    resources: dict[str, list[str]] = {}
    ec2 = ec2_backends[ACCOUNT_ID][call.region] if call.service == "ec2" else None
    for table in ec2.route_tables.values() if ec2 and "AssociationId" in call.params else ():
        if subnet := table._associations.get(str(call.params["AssociationId"])):
            resources |= {"route-table": [table.id], "subnet": [subnet]}
    target: Any = efs_backends[ACCOUNT_ID][call.region].mount_targets_by_id.get(str(call.params.get("MountTargetId")))
    if target is not None:
        resources |= {"file-system": [target.file_system_id], "network-interface": [target.network_interface_id]}
    return resources


def _of_scheduler(call: Call) -> dict[str, list[str]]:
    if "ScheduleGroup" in call.action:
        return {"schedule-group": [str(call.params.get("Name", "*"))]}
    if call.action == "TagResource":
        return {"schedule-group": [str(call.params["ResourceArn"]).rpartition("/")[2]]}
    group, name = call.params.get("GroupName") or call.params.get("ScheduleGroup") or "default", call.params.get("Name")
    return {"schedule": [f"{group}/{name}"]} if name else {}


def _values(params: object) -> Iterator[str]:
    if isinstance(params, Mapping):
        for value in params.values():
            yield from _values(value)
    elif isinstance(params, list | tuple):
        for value in params:
            yield from _values(value)
    elif isinstance(params, str):
        yield params


def _tags_of_new(call: Call) -> dict[str, dict[str, str]]:
    """Return the tags for new resources in a call, by type; under the empty name if the call names no type."""
    tags: dict[str, dict[str, str]] = {}
    for parameter, value in call.params.items():
        if match := re.fullmatch(r"(TagSpecification\.\d+)\.ResourceType", parameter):
            tags[str(value)] = _pairs(call, f"{match[1]}.Tag")
    if isinstance(call.params.get("Tags"), list):
        tags[""] = {tag["Key"]: tag["Value"] for tag in call.params["Tags"]}
    if _is_spot(call):
        tags.setdefault("spot-instances-request", {})
    return tags


def _is_spot(call: Call) -> bool:
    return call.params.get("InstanceMarketOptions.MarketType") == "spot"


def _pairs(call: Call, prefix: str) -> dict[str, str]:
    pairs = {}
    for parameter, value in call.params.items():
        if match := re.fullmatch(re.escape(prefix) + r"\.(\d+)\.Key", parameter):
            pairs[str(value)] = str(call.params.get(f"{prefix}.{match[1]}.Value", ""))
    return pairs


def _facts(call: Call) -> dict[str, str]:
    return {"ec2:InstanceType": str(call.params["InstanceType"])} if "InstanceType" in call.params else {}


def _keep_known_keys(context: Mapping[str, str], keys: list[str]) -> dict[str, str]:
    """Return the keys that IAM supports for this action and type."""
    general = {key.partition("/")[0] for key in keys}
    return {key: value for key, value in context.items() if key.partition("/")[0] in general}


def _tags(call: Call, kind: str, name: str) -> dict[str, str]:
    """Return the tags of a resource."""
    if kind == "file-system":
        tags: dict[str, str] = efs_backends[ACCOUNT_ID][call.region].tagging_service.get_tag_dict_for_resource(name)
        return tags
    books = ec2_backends[ACCOUNT_ID][call.region]
    if kind == "key-pair" and name in books.key_pairs:
        name = books.key_pairs[name].id
    elif kind == "placement-group" and name in groups_of(books):
        name = groups_of(books)[name]["GroupId"]
    return dict(books.tags.get(name, {}))


def _arn(call: Call, service: str, kind: str, name: str) -> str:
    """Return the resource's ARN. `name` fills the blanks at its end."""
    form = _read_table()["arns"].get(f"{service}:{kind}")
    if form is None:
        return "*"
    owner = "" if service == "ssm" and name.startswith("/aws/service/") else ACCOUNT_ID
    form = form.replace("${Partition}", "aws").replace("${Region}", call.region).replace("${Account}", owner)
    start = form.partition("${")[0]
    return f"{start}{name.removeprefix('/') if service == 'ssm' else name}"
