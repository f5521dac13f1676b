"""Find the course's resources in the account, without Terraform: every kind of resource is looked up by its tags.

The tagging API is only a cross-check: it lists deleted resources for a while, and omits key pairs and placement groups.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from gpucourse.aws import schedule, tags
from gpucourse.aws.kinds import FILE_SYSTEM, INSTANCE, KINDS, MOUNT_TARGET, NETWORK, ORDER, OTHER, ROLE, SCHEDULES, VOLUME, Kind
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, CredentialsError, GpucourseError, PermissionRefused
from gpucourse.model.cloud import CloudResource
from gpucourse.parallel import run_all, try_all

AT_ONCE = 8
_REFUSED = (CloudError, CredentialsError, PermissionRefused)  # a region that is not enabled answers AuthFailure
_TELLING = (INSTANCE, VOLUME, NETWORK, FILE_SYSTEM)  # each lab has a network; the others cost money
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
    """Return every resource with the course's tags in these regions (by default, the account's own region), in the order of
    removal.

    An empty list proves that nothing is left. A kind that AWS does not let us list is included as one resource with `seen`
    False. Unseen schedules and roles of the backstop are included only with `strict`: they cost nothing and only end instances.
    A region that rejects the credentials while another accepts them is no longer enabled; it counts as one unseen resource.
    Raises the errors of `Account.call`, except PermissionRefused.
    """
    project_tags = tags.make_project_tags(stack=stack, course=course)
    places = [account.in_region(region) for region in dict.fromkeys(regions or [account.region])]
    looks: list[tuple[Account, Callable[[], list[CloudResource]]]] = [
        (place, partial(_look, place, kind, project_tags))
        for place in places
        for kind in KINDS
        if kind is not ROLE or place is places[0]  # IAM has no regions
    ]
    looks += [(place, partial(_find_other_kinds, place, project_tags)) for place in places]
    answers = try_all([look for _place, look in looks], limit=AT_ONCE)
    errors = [(place.region, answer) for (place, _), answer in zip(looks, answers, strict=True) if not isinstance(answer, list)]
    shut = {region: error for region, error in errors if isinstance(error, CredentialsError)}
    for _region, error in errors:
        if not isinstance(error, CredentialsError) or len(shut) == len(places):
            raise error
    resources = [resource for answer in answers if isinstance(answer, list) for resource in answer]
    resources += [
        _make_unseen_resource(INSTANCE, project_tags, region, f"{SHUT} {error.what}") for region, error in shut.items()
    ]
    leftovers = [
        resource for resource in resources if resource.seen or strict or resource.kind not in {SCHEDULES.name, ROLE.name}
    ]
    return sorted(leftovers, key=lambda resource: (resource.region, ORDER.index(resource.kind), resource.name, resource.id))


def items(account: Account, kind: Kind, project_tags: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Return AWS's descriptions of all resources of one kind with these tags, each with its tags."""
    if kind is MOUNT_TARGET:  # they have no tags, so they belong to the course if their file system does
        for system in items(account, FILE_SYSTEM, project_tags):
            for target in account.pages("efs", kind.operation, kind.key, FileSystemId=system["FileSystemId"]):
                yield {**target, "Tags": system["Tags"]}
        return
    if kind.service != "ec2":
        yield from (item for item in _FINDERS[kind.name](account) if tags.fits(tags.read(item), project_tags))
        return
    filters = tags.filters(project_tags) + [{"Name": name, "Values": list(values)} for name, values in kind.states.items()]
    if kind is INSTANCE:
        for reservation in account.pages("ec2", kind.operation, "Reservations", Filters=filters):
            yield from reservation["Instances"]
        return
    yield from account.pages("ec2", kind.operation, kind.key, Filters=filters)


def _file_systems(account: Account) -> Iterator[dict[str, Any]]:
    """Return all shared storage of the account, because EFS, unlike EC2, cannot filter by tag."""
    for system in account.pages("efs", FILE_SYSTEM.operation, FILE_SYSTEM.key):
        if system.get("LifeCycleState") != "deleted":
            yield system


def _schedule_groups(account: Account) -> Iterator[dict[str, Any]]:
    """Return the groups of the backstop's schedules."""
    for group in account.pages("scheduler", SCHEDULES.operation, SCHEDULES.key, NamePrefix=tags.PROJECT):
        if group.get("State") != "DELETING":
            yield {**group, **_tags_unless_gone(account, "scheduler", "list_tags_for_resource", ResourceArn=group["Arn"])}


def _roles(account: Account) -> Iterator[dict[str, Any]]:
    """Return the backstop's roles that were created for a single stack."""
    for role in account.pages("iam", ROLE.operation, ROLE.key, PathPrefix=schedule.PATH):
        yield {**role, **_tags_unless_gone(account, "iam", "list_role_tags", RoleName=role["RoleName"])}


_FINDERS: dict[str, Callable[[Account], Iterator[dict[str, Any]]]] = {
    FILE_SYSTEM.name: _file_systems,
    SCHEDULES.name: _schedule_groups,
    ROLE.name: _roles,
}


def _tags_unless_gone(account: Account, service: str, operation: str, **parameters: str) -> dict[str, Any]:
    """Return the tags of one resource, or none if it was removed after it was listed."""
    return {"Tags": (account.call_if_exists(service, operation, **parameters) or {}).get("Tags")}


def _look(account: Account, kind: Kind, project_tags: Mapping[str, str]) -> list[CloudResource]:
    """Return the resources of one kind. If AWS does not let us list them, return one resource that is marked as unseen."""
    try:
        return [_parse_resource(kind, item, account.region) for item in items(account, kind, project_tags)]
    except PermissionRefused as error:
        return [_make_unseen_resource(kind, project_tags, account.region, f"not allowed to look: {error.action}")]


def _parse_resource(kind: Kind, item: dict[str, Any], region: str) -> CloudResource:
    tag_values = tags.read(item)
    state = item.get("State") or item.get("Status") or item.get("LifeCycleState") or ""
    return CloudResource(
        kind=kind.name,
        id=item[kind.id],
        region=region,
        remove=" && ".join(step.command(region) for step in kind.remove(item)),
        name=tag_values.get("Name") or str(item.get(kind.label, "")),
        state=str(state.get("Name", "") if isinstance(state, dict) else state),
        tags=tag_values,
        parent=item["FileSystemId"] if kind is MOUNT_TARGET else "",
    )


def _find_other_kinds(account: Account, project_tags: Mapping[str, str]) -> list[CloudResource]:
    """Return resources with the course's tags whose kinds no stack creates. Errors are ignored: this is only a cross-check."""
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
                CloudResource(kind=OTHER, id=arn, region=account.region, remove=look, name=service, tags=tags.read(item))
            )
    except GpucourseError:
        return []
    return resources


def _make_unseen_resource(kind: Kind, project_tags: Mapping[str, str], region: str, reason: str) -> CloudResource:
    filters = [f"Name=tag:{key},Values={shlex.quote(value)}" for key, value in project_tags.items()]
    words = ["aws", kind.service, kind.operation.replace("_", "-"), "--region", region]
    words += ["--filters", *filters] if kind.service == "ec2" else []
    return CloudResource(kind=kind.name, id="unknown", region=region, remove=" ".join(words), seen=False, note=reason)


def find_regions_in_use(account: Account, *, known_regions: Collection[str]) -> tuple[list[str], str]:
    """Return the enabled regions, except `known_regions`, that contain resources of the course.

    The second value says why some regions could not be checked; it is empty if all were. One call per region, to the tagging
    API, shows whether a leak scan of the region is worthwhile.
    """
    try:
        answer = account.call("ec2", "describe_regions")["Regions"]  # without AllRegions, this lists the enabled regions
    except (CloudError, PermissionRefused) as error:
        return [], f"the account's other regions could not be listed: {error.what}"
    regions = sorted({str(region["RegionName"]) for region in answer} - set(known_regions))
    answers = run_all([partial(_holds, account.in_region(name)) for name in regions], limit=AT_ONCE)
    by_region = dict(zip(regions, answers, strict=True))
    blind = [name for name, present in by_region.items() if present is None]
    unchecked = f"not checked, since AWS refused or did not answer: {', '.join(blind)}" if blind else ""
    return [name for name, present in by_region.items() if present], unchecked


def _holds(place: Account) -> bool | None:
    """Return whether the region contains resources of the course; None if AWS does not say."""
    project_tags = tags.make_project_tags()
    filters = [{"Key": key, "Values": [value]} for key, value in project_tags.items()]
    tagged = place.pages("resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters)
    for things in (tagged, chain.from_iterable(items(place, kind, project_tags) for kind in _TELLING)):
        try:
            return any(True for _thing in things)
        except _REFUSED:
            continue
    return None
