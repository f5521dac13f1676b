"""The tags that make something ours. Nothing is found, changed or removed by its name."""

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
_NO_TAG = re.compile(r"[^\w .:/=+@-]")  # what IAM, EFS and EventBridge refuse in the value of a tag


def make_project_tags(*, stack: str | None = None, course: str | None = None) -> dict[str, str]:
    """The tags that a resource must carry to belong to this stack, or to this course (a workspace's id), or to the project."""
    wanted = {"Project": PROJECT}
    if stack:
        wanted["Stack"] = stack
    if course:
        wanted["Course"] = course
    return wanted


def filters(wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    """The same as filters of EC2's describe calls."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in wanted.items()]


def of(item: Mapping[str, Any]) -> dict[str, str]:
    """The tags of something that AWS described. A network interface calls them TagSet."""
    listed: Iterable[Mapping[str, str]] = item.get("Tags") or item.get("TagSet") or ()
    return {tag["Key"]: tag["Value"] for tag in listed}


def fits(tags: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether all wanted tags are there with their values."""
    return all(tags.get(key) == value for key, value in wanted.items())


def to_aws_tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """The tags as AWS wants them when something is made."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def make_value(text: str) -> str:
    """The text as a tag may hold it: a character that AWS refuses becomes `_`, and 128 are kept."""
    return _NO_TAG.sub("_", text)[:128]


def make_expires(expires: datetime) -> list[dict[str, str]]:
    """The tag that says how long something is meant to exist, as AWS wants it."""
    return to_aws_tags({_EXPIRES: expires.astimezone(UTC).isoformat(timespec="seconds")})


def retag_expires(account: Account, resources: Iterable[CloudResource], expires: datetime) -> None:
    """Write another deadline on those of these that carry one, and on the rules of the security groups among them.

    `leaks`, other workspaces and Terraform's next plan read it. The backstop has a call of its own. Raises what a call raises.
    """
    dated = [resource for resource in resources if _EXPIRES in resource.tags]
    wanted = make_expires(expires)
    kinds = {kind.name for kind in KINDS}
    ids = {resource.id for resource in dated if resource.kind in kinds}
    for group in (resource.id for resource in dated if resource.kind == SECURITY_GROUP.name):
        own = [{"Name": "group-id", "Values": [group]}]
        rules = account.pages("ec2", "describe_security_group_rules", "SecurityGroupRules", Filters=own)
        ids |= {rule["SecurityGroupRuleId"] for rule in rules if _EXPIRES in of(rule)}
    if ids:
        account.call("ec2", "create_tags", Resources=sorted(ids), Tags=wanted)
    for system in (resource.id for resource in dated if resource.kind == FILE_SYSTEM):
        account.call("efs", "tag_resource", ResourceId=system, Tags=wanted)
