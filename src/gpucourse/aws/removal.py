"""Remove the resources that a leak scan found, in an order that works.

Immediately before a resource is removed, it is looked up again. If it has lost the course's tags, it is not touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gpucourse.aws import resource_scan, tags
from gpucourse.aws.kinds import FILE_SYSTEM, INSTANCE, KINDS, MOUNT_TARGET, ORDER, ROLE, SCHEDULES, SECURITY_GROUP, ApiCall
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, CloudThrottled, GpucourseError
from gpucourse.model.cloud import CloudResource
from gpucourse.model.event import ResourceEvent, Watcher
from gpucourse.parallel import run_all

PATIENCE_S = 300.0
PAUSE_S = 5.0
_BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, kw_only=True)
class _Work:
    """The removal of resources in one region: the account, the time limit, and the watcher of its events."""

    account: Account
    watcher: Watcher
    deadline: float
    sleep: Callable[[float], None]
    clock: Callable[[], float]


def remove(
    account: Account,
    resources: list[CloudResource],
    watcher: Watcher,
    *,
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> list[CloudResource]:
    """Remove these resources, in all regions in parallel; return those that could not be removed, with the reason in `note`.

    A resource that is already gone counts as removed. A resource without the tags Project, Course and Stack is not touched. A
    resource on which others still depend is tried again until `patience_s` seconds have passed.
    """
    deadline = clock() + patience_s
    regions = sorted({resource.region for resource in resources})

    def one_region(region: str) -> list[CloudResource]:
        work = _Work(account=account.in_region(region), watcher=watcher, deadline=deadline, sleep=sleep, clock=clock)
        return _remove_in(work, [resource for resource in resources if resource.region == region])

    return [
        resource
        for remaining in run_all([partial(one_region, region) for region in regions], limit=len(regions))
        for resource in remaining
    ]


def _remove_in(work: _Work, resources: list[CloudResource]) -> list[CloudResource]:
    remaining: list[CloudResource] = []
    for kind in ORDER:
        of_kind = [resource for resource in resources if resource.kind == kind]
        if kind == SECURITY_GROUP.name:
            for resource in of_kind:
                _remove_group_references(work, resource)
        if kind in {SCHEDULES.name, ROLE.name} and any(resource.kind == INSTANCE.name for resource in remaining):
            remaining += [replace(resource, note="kept, since it still has to end the instances above") for resource in of_kind]
            continue
        for resource in of_kind:
            if (note := _remove_one(work, resource)) is not None:
                remaining.append(replace(resource, note=note))
        if kind == INSTANCE.name and remaining:  # what these instances use will not be released, however long we wait
            work = replace(work, deadline=work.clock())
        if kind in {INSTANCE.name, MOUNT_TARGET.name, FILE_SYSTEM.name}:
            remaining += _wait_until_gone(
                work, [resource for resource in of_kind if resource.id not in {leftover.id for leftover in remaining}]
            )
    return remaining


def _remove_one(work: _Work, resource: CloudResource) -> str | None:
    """Return why the resource could not be removed, or None if it is gone."""
    if not resource.seen:
        return resource.note
    if resource.tags.get("Project") != tags.PROJECT:
        return "it does not have the course's tags, so it was left alone"
    start = work.clock()
    address = f"{resource.region} {resource.kind} {resource.id}"

    def tell(state: Any, detail: str = "") -> None:
        seconds = work.clock() - start
        work.watcher(ResourceEvent(address=address, action="delete", state=state, seconds=seconds, detail=detail))

    tell("started")
    while True:
        try:
            for step in _steps(work.account, resource):
                work.account.call_if_exists(step.service, step.operation, **step.parameters)
        except GpucourseError as error:
            kind = error.kind if isinstance(error, CloudError) else ""
            may_repeat = isinstance(error, CloudThrottled) or kind in {"in_use", "service"}
            if may_repeat and work.clock() < work.deadline:
                tell("progress", error.what)
                work.sleep(PAUSE_S)
                continue
            holders = _describe_holders(work.account, resource) if kind == "in_use" else ""
            tell("failed", error.what)
            return f"{error.what}{holders}"
        break
    tell("done")
    return None


def _steps(account: Account, resource: CloudResource) -> Iterator[ApiCall]:
    """Return the calls that remove the resource, based on its current description. Return no calls if it is gone or has lost
    its tags.

    Raises CloudError for a kind that the course does not create.
    """
    kind = _BY_NAME.get(resource.kind)
    if kind is None:
        raise CloudError(f"{resource.id} is of a kind that the course does not create", hint=resource.remove)
    own_tags: dict[str, str] = {key: resource.tags[key] for key in ("Project", "Course", "Stack") if key in resource.tags}
    for item in resource_scan.items(account, kind, own_tags):
        if item[kind.id] == resource.id:
            yield from kind.remove(item)


def _wait_until_gone(work: _Work, resources: list[CloudResource]) -> list[CloudResource]:
    """Wait until these resources are gone, since the network cannot be removed before them.

    Return the resources that still exist when time is up.
    """
    while resources:
        try:
            resources = [resource for resource in resources if _present(work.account, resource)]
        except GpucourseError as error:
            if work.clock() >= work.deadline or not isinstance(error, CloudError):
                return [replace(resource, note=error.what) for resource in resources]
        if resources and work.clock() >= work.deadline:
            return [replace(resource, note="its removal was requested, but it still exists") for resource in resources]
        if resources:
            work.sleep(PAUSE_S)
    return []


def _present(account: Account, resource: CloudResource) -> bool:
    try:
        return any(True for _step in _steps(account, resource))
    except CloudError as error:
        if error.kind == "gone":
            return False
        raise


def _remove_group_references(work: _Work, group: CloudResource) -> None:
    """Remove the rules of this security group that refer to other groups: groups that refer to each other cannot be deleted."""
    try:
        if not any(True for _step in _steps(work.account, group)):
            return
        for rule in work.account.pages(
            "ec2",
            "describe_security_group_rules",
            "SecurityGroupRules",
            Filters=[{"Name": "group-id", "Values": [group.id]}],
        ):
            if rule.get("ReferencedGroupInfo"):
                way = "egress" if rule["IsEgress"] else "ingress"
                work.account.call(
                    "ec2",
                    f"revoke_security_group_{way}",
                    GroupId=group.id,
                    SecurityGroupRuleIds=[rule["SecurityGroupRuleId"]],
                )
    except GpucourseError:
        return  # the deletion itself reports the error


def _describe_holders(account: Account, resource: CloudResource) -> str:
    """Describe the network interfaces that prevent the removal of a network; return an empty string if there are none."""
    field = {"security group": "group-id", "subnet": "subnet-id", "VPC": "vpc-id"}.get(resource.kind)
    if field is None:
        return ""
    try:
        holders = list(
            account.pages(
                "ec2",
                "describe_network_interfaces",
                "NetworkInterfaces",
                Filters=[{"Name": field, "Values": [resource.id]}],
            )
        )
    except GpucourseError:
        return ""
    return f"; held by {', '.join(map(_holder, holders))}" if holders else ""


def _holder(item: Mapping[str, Any]) -> str:
    holder = (item.get("Attachment") or {}).get("InstanceId") or item.get("Description") or "no owner"
    return f"{item['NetworkInterfaceId']} ({holder})"
