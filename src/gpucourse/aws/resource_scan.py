"""Finding what the account still contains of the course, by describing every kind with its tags, without Terraform.

The tagging API is only a cross-check: it lists deleted resources for a while and omits key pairs and placement groups.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gpucourse.aws import schedule, tags
from gpucourse.aws.kinds import (
    FILE_SYSTEM,
    INSTANCE,
    KINDS,
    MOUNT_TARGET,
    NETWORK,
    ORDER,
    OTHER,
    ROLE,
    SCHEDULES,
    VOLUME,
    ApiCall,
    Kind,
    role_steps,
)
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, CredentialsError, GpucourseError, PermissionRefused
from gpucourse.model.cloud import CloudResource
from gpucourse.parallel import run_all, try_all

AT_ONCE = 8
_REFUSED = (CloudError, CredentialsError, PermissionRefused)  # a region that is not enabled answers AuthFailure
_TELLING = (INSTANCE, VOLUME, NETWORK)  # each lab has a network; these, and shared storage, cost money
SHUT = "the region does not accept these credentials, for example because it is no longer enabled:"
_TAGGED_KINDS = (  # kinds that the tagging API may list, but describe calls report more precisely
    *("ec2:instance", "ec2:volume", "ec2:vpc", "ec2:subnet", "ec2:security-group", "ec2:security-group-rule"),
    *("ec2:internet-gateway", "ec2:route-table", "ec2:network-interface", "ec2:elastic-ip", "ec2:key-pair"),
    *("ec2:placement-group", "ec2:spot-instances-request", "ec2:spot-instance-request"),
    *("elasticfilesystem:file-system", "scheduler:schedule-group", "iam:role"),
)


def find(
    account: Account,
    *,
    stack: str | None = None,
    course: str | None = None,
    regions: Iterable[str] = (),
    strict: bool = False,
) -> list[CloudResource]:
    """Return every resource with the course's tags in these regions (by default the account's own), in the order of removal.

    An empty list proves that nothing is left. A kind that AWS does not let us see is in the list too, with `seen` False; the
    backstop's schedules and role, which cost nothing and only end the course's instances, are in it only with `strict`. A
    region that rejects the credentials while another accepts them counts as one unseen resource: the region is no longer
    enabled. Raises the errors of `Account.call`, except PermissionRefused.
    """
    project_tags = tags.make_project_tags(stack=stack, course=course)
    places = [account.in_region(region) for region in dict.fromkeys(regions or [account.region])]
    looks: list[tuple[Account, Callable[[Account, Mapping[str, str]], list[CloudResource]]]] = []
    for place in places:
        looks += [(place, _looker(kind)) for kind in KINDS]
        looks += [(place, _file_systems), (place, _schedules), (place, _others)]
    looks.append((places[0], _roles))  # IAM has no regions
    answers = try_all([partial(look, place, project_tags) for place, look in looks], limit=AT_ONCE)
    errors = [(place.region, answer) for (place, _), answer in zip(looks, answers, strict=True) if not isinstance(answer, list)]
    shut = {region: error for region, error in errors if isinstance(error, CredentialsError)}
    for _region, error in errors:
        if not isinstance(error, CredentialsError) or len(shut) == len(places):
            raise error
    resources = [resource for answer in answers if isinstance(answer, list) for resource in answer]
    resources += [
        _make_unseen_resource(INSTANCE.name, "ec2", INSTANCE.operation, project_tags, region, f"{SHUT} {error.what}")
        for region, error in shut.items()
    ]
    listed = [resource for resource in resources if resource.seen or strict or resource.kind not in {SCHEDULES, ROLE}]
    return sorted(listed, key=lambda resource: (resource.region, ORDER.index(resource.kind), resource.name, resource.id))


def items(account: Account, kind: Kind, project_tags: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Return the descriptions by AWS of all resources of one kind with these tags."""
    filters = tags.filters(project_tags) + [{"Name": name, "Values": list(values)} for name, values in kind.states.items()]
    if kind is INSTANCE:
        for reservation in account.pages("ec2", kind.operation, "Reservations", Filters=filters):
            yield from reservation["Instances"]
        return
    yield from account.pages("ec2", kind.operation, kind.key, Filters=filters)


def file_systems(account: Account, project_tags: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Return the shared storage with these tags; EFS cannot filter, so it is done here."""
    for system in account.pages("efs", "describe_file_systems", "FileSystems"):
        if tags.fits(tags.of(system), project_tags) and system.get("LifeCycleState") != "deleted":
            yield system


def mount_targets(account: Account, system: str) -> list[dict[str, Any]]:
    """Return the mount targets of one file system; they have no tags, so they belong to the course if it does."""
    return list(account.pages("efs", "describe_mount_targets", "MountTargets", FileSystemId=system))


def schedule_groups(account: Account, project_tags: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Return the groups of the backstop's schedules with these tags: name and tags."""
    for group in account.pages("scheduler", "list_schedule_groups", "ScheduleGroups", NamePrefix=tags.PROJECT):
        if group.get("State") == "DELETING":
            continue
        group_tags = _tags_unless_gone(account, "scheduler", "list_tags_for_resource", ResourceArn=group["Arn"])
        if tags.fits(group_tags, project_tags):
            yield group["Name"], group_tags


def roles(account: Account, project_tags: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Return the backstop's roles with these tags that were made for a stack: name and tags."""
    for role in account.pages("iam", "list_roles", "Roles", PathPrefix=schedule.PATH):
        role_tags = _tags_unless_gone(account, "iam", "list_role_tags", RoleName=role["RoleName"])
        if tags.fits(role_tags, project_tags):
            yield role["RoleName"], role_tags


def _tags_unless_gone(account: Account, service: str, operation: str, **parameters: str) -> dict[str, str]:
    """Return the tags of one resource; none if it was removed after it was listed, together with another lab."""
    try:
        return tags.of(account.call(service, operation, **parameters))
    except CloudError as error:
        if error.kind != "gone":
            raise
        return {}


def _looker(kind: Kind) -> Callable[[Account, Mapping[str, str]], list[CloudResource]]:
    def look(account: Account, project_tags: Mapping[str, str]) -> list[CloudResource]:
        try:
            return [_parse_resource(kind, item, account.region) for item in items(account, kind, project_tags)]
        except PermissionRefused as error:
            return [_make_unseen_resource(kind.name, "ec2", kind.operation, project_tags, account.region, _describe(error))]

    return look


def _parse_resource(kind: Kind, item: dict[str, Any], region: str) -> CloudResource:
    tag_values = tags.of(item)
    state = item.get("State") or item.get("Status") or ""
    return CloudResource(
        kind=kind.name,
        id=item[kind.id],
        region=region,
        remove=" && ".join(step.command(region) for step in kind.remove(item)),
        name=tag_values.get("Name") or str(item.get(kind.label, "")),
        state=str(state.get("Name", "") if isinstance(state, dict) else state),
        tags=tag_values,
    )


def _file_systems(account: Account, project_tags: Mapping[str, str]) -> list[CloudResource]:
    resources: list[CloudResource] = []
    region = account.region
    try:
        for system in file_systems(account, project_tags):
            system_tags, system_id = tags.of(system), system["FileSystemId"]
            common = CloudResource(kind=FILE_SYSTEM, id=system_id, region=region, remove="", tags=system_tags)
            for target in mount_targets(account, system_id):
                remove = ApiCall("efs", "delete_mount_target", {"MountTargetId": target["MountTargetId"]}).command(region)
                resources.append(
                    replace(
                        common,
                        kind=MOUNT_TARGET,
                        id=target["MountTargetId"],
                        parent=system_id,
                        remove=remove,
                        state=target.get("LifeCycleState", ""),
                    )
                )
            remove = ApiCall("efs", "delete_file_system", {"FileSystemId": system_id}).command(region)
            resources.append(
                replace(common, name=system.get("Name", ""), state=system.get("LifeCycleState", ""), remove=remove)
            )
    except PermissionRefused as error:
        resources.append(_make_unseen_resource(FILE_SYSTEM, "efs", "describe_file_systems", {}, region, _describe(error)))
    return resources


def _schedules(account: Account, project_tags: Mapping[str, str]) -> list[CloudResource]:
    try:
        return [
            CloudResource(
                kind=SCHEDULES,
                id=name,
                region=account.region,
                remove=ApiCall("scheduler", "delete_schedule_group", {"Name": name}).command(account.region),
                name=name,
                tags=group_tags,
            )
            for name, group_tags in schedule_groups(account, project_tags)
        ]
    except PermissionRefused as error:
        return [_make_unseen_resource(SCHEDULES, "scheduler", "list_schedule_groups", {}, account.region, _describe(error))]


def _roles(account: Account, project_tags: Mapping[str, str]) -> list[CloudResource]:
    try:
        return [
            CloudResource(
                kind=ROLE,
                id=name,
                region=account.region,
                remove=" && ".join(step.command(account.region) for step in role_steps(name, schedule.POLICY_NAME)),
                name=name,
                tags=role_tags,
            )
            for name, role_tags in roles(account, project_tags)
        ]
    except PermissionRefused as error:
        return [_make_unseen_resource(ROLE, "iam", "list_roles", {}, account.region, _describe(error))]


def _others(account: Account, project_tags: Mapping[str, str]) -> list[CloudResource]:
    """Return resources with the course's tags of kinds that no stack creates. Only a cross-check, so an error is ignored."""
    filters = [{"Key": key, "Values": [value]} for key, value in project_tags.items()]
    resources: list[CloudResource] = []
    try:
        for item in account.pages("resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters):
            arn = str(item["ResourceARN"])
            service, path = arn.split(":")[2], arn.split(":", 5)[5]
            if f"{service}:{path.split('/')[0]}" in _TAGGED_KINDS:
                continue
            look = (
                f"aws resourcegroupstaggingapi get-resources --region {account.region} --resource-arn-list {shlex.quote(arn)}"
            )
            resources.append(
                CloudResource(kind=OTHER, id=arn, region=account.region, remove=look, name=service, tags=tags.of(item))
            )
    except GpucourseError:
        return []
    return resources


def _make_unseen_resource(
    kind: str, service: str, operation: str, project_tags: Mapping[str, str], region: str, reason: str
) -> CloudResource:
    filters = [f"Name=tag:{key},Values={shlex.quote(value)}" for key, value in project_tags.items()]
    words = ["aws", service, operation.replace("_", "-"), "--region", region, *(["--filters", *filters] if filters else [])]
    return CloudResource(
        kind=kind,
        id="unknown",
        region=region,
        remove=" ".join(words),
        seen=False,
        note=reason,
    )


def _describe(error: PermissionRefused) -> str:
    return f"not allowed to look: {error.action}"


def find_regions_in_use(account: Account, *, besides: Collection[str]) -> tuple[list[str], str]:
    """Return the enabled regions, except `besides`, that contain resources of the course; and why some could not be checked,
    empty if all were.

    One call per region, to the API that lists by tag: enough to know where a leak scan is worth its calls.
    """
    try:
        answer = account.call("ec2", "describe_regions")["Regions"]  # without AllRegions: those that are enabled
    except CloudError as error:
        return [], f"the account's other regions could not be listed: {error.what}"
    except PermissionRefused as error:
        return [], f"the account's other regions could not be listed: not allowed: {error.action}"
    regions = sorted({str(region["RegionName"]) for region in answer} - set(besides))
    answers = run_all([partial(_holds, account.in_region(name)) for name in regions], limit=AT_ONCE)
    by_region = dict(zip(regions, answers, strict=True))
    blind = [name for name, present in by_region.items() if present is None]
    unasked = f"not looked at, since AWS did not let us or did not answer: {', '.join(blind)}" if blind else ""
    return [name for name, present in by_region.items() if present], unasked


def _holds(place: Account) -> bool | None:
    """Return whether the region contains resources of the course; None if that could not be determined."""
    filters = [{"Key": key, "Values": [value]} for key, value in tags.make_project_tags().items()]
    for look in (
        lambda: place.pages("resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters),
        lambda: _iterate_tagged(place),
    ):
        try:
            return _has_items(look())
        except _REFUSED:
            continue
    return None


def _iterate_tagged(place: Account) -> Iterator[object]:
    for kind in _TELLING:
        yield from items(place, kind, tags.make_project_tags())
    yield from file_systems(place, tags.make_project_tags())


def _has_items(things: Iterable[object]) -> bool:
    return any(True for _one in things)
