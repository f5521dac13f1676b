"""The tags that mark a resource as belonging to the course. Nothing is found, changed or removed by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gpucourse.aws.kinds import FILE_SYSTEM, KINDS, SECURITY_GROUP

if TYPE_CHECKING:
    from gpucourse.aws.session import Account
    from gpucourse.model.cloud import CloudResource

PROJECT = "gpucourse"
_EXPIRES = "Expires"
_NO_TAG = re.compile(r"[^\w .:/=+@-]")  # characters that IAM, EFS and EventBridge refuse in the value of a tag


def make_project_tags(*, stack: str | None = None, course: str | None = None) -> dict[str, str]:
    """Return the tags that all resources of this stack, of this course (a workspace's id) or of the whole project have in
    common."""
    project_tags = {"Project": PROJECT}
    if stack:
        project_tags["Stack"] = stack
    if course:
        project_tags["Course"] = course
    return project_tags


def filters(project_tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the tags as filters for EC2's describe calls."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in project_tags.items()]


def read(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a resource, from AWS's description. In the description of a network interface, they are under
    TagSet."""
    tags: Iterable[Mapping[str, str]] = item.get("Tags") or item.get("TagSet") or ()
    return {tag["Key"]: tag["Value"] for tag in tags}


def fits(tags: Mapping[str, str], required: Mapping[str, str]) -> bool:
    """Return whether all required tags are present, with their values."""
    return all(tags.get(key) == value for key, value in required.items())


def to_aws_tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the tags in the form that AWS expects when something is created."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def make_value(text: str) -> str:
    """Return the text as a valid tag value. Characters that AWS refuses become `_`, and only the first 128 characters are
    kept."""
    return _NO_TAG.sub("_", text)[:128]


def make_expires(expires: datetime) -> list[dict[str, str]]:
    """Return the tag with a resource's deadline, in the form that AWS expects."""
    return to_aws_tags({_EXPIRES: expires.astimezone(UTC).isoformat(timespec="seconds")})


def retag_expires(account: Account, resources: Iterable[CloudResource], expires: datetime) -> None:
    """Write another deadline to the tags of these resources. For a security group, also change the tags of the group's rules.

    Resources without a deadline are left alone. `leaks`, other workspaces and Terraform's next plan read these tags.
    `schedule.retag_expires` changes the tags of the backstop. Raises the errors of `Account.call`.
    """
    dated = [resource for resource in resources if _EXPIRES in resource.tags]
    expires_tag = make_expires(expires)
    ec2_kinds = {kind.name for kind in KINDS if kind.service == "ec2"}
    ids = {resource.id for resource in dated if resource.kind in ec2_kinds}
    for group in (resource.id for resource in dated if resource.kind == SECURITY_GROUP.name):
        filters = [{"Name": "group-id", "Values": [group]}]
        rules = account.pages("ec2", "describe_security_group_rules", "SecurityGroupRules", Filters=filters)
        ids |= {rule["SecurityGroupRuleId"] for rule in rules if _EXPIRES in read(rule)}
    if ids:
        account.call("ec2", "create_tags", Resources=sorted(ids), Tags=expires_tag)
    for system in (resource.id for resource in dated if resource.kind == FILE_SYSTEM.name):
        account.call("efs", "tag_resource", ResourceId=system, Tags=expires_tag)
