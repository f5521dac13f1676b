"""Everything in the account that was not there from the start: resources that would be billed, or that block others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moto.core.base_backend import BackendDict
from moto.efs.models import efs_backends
from moto.iam.models import iam_backends
from moto.scheduler.models import scheduler_backends

from gpucourse.aws import schedule
from tests.mock_aws.account import Resource
from tests.mock_aws.patches.placement import groups_of
from tests.mock_aws.state import ACCOUNT_ID, State, list_instances


def everything(state: State) -> list[Resource]:
    """Return all resources, in the order in which they would be removed."""
    resources = [resource for region, backend in state.backends() for resource in _of_ec2(region, backend)]
    return [*resources, *_of_efs(), *_of_scheduler(), *_of_iam()]


def _of_ec2(region: str, backend: Any) -> Iterator[Resource]:
    def tags(thing: Any) -> dict[str, str]:
        return {tag["key"]: tag["value"] for tag in thing.get_tags()}

    def list_resources(kind: str, things: Any) -> Iterator[Resource]:
        for thing in things:
            yield Resource(kind=kind, id=thing.id, region=region, tags=tags(thing))

    born = backend.default_vpc.id
    yield from list_resources("instance", list_instances(backend))
    open_requests = (entry for entry in backend.spot_instance_requests.values() if entry.state in {"open", "active"})
    yield from list_resources("spot request", open_requests)
    yield from list_resources("volume", backend.volumes.values())
    yield from list_resources("network interface", backend.enis.values())
    for address in backend.addresses:
        yield Resource(kind="address", id=address.allocation_id or address.public_ip, region=region)
    for pair in backend.key_pairs.values():
        yield Resource(kind="key pair", id=pair.key_name, region=region, tags=tags(pair))
    for group in groups_of(backend).values():
        yield Resource(
            kind="placement group", id=group["GroupName"], region=region, tags=backend.tags.get(group["GroupId"], {})
        )
    for groups in backend.groups.values():
        yield from list_resources("security group", (entry for entry in groups.values() if entry.name != "default"))
    subnets = (subnet for by_zone in backend.subnets.values() for subnet in by_zone.values())
    yield from list_resources("subnet", (entry for entry in subnets if entry.vpc_id != born or not entry.default_for_az))
    tables = (entry for entry in backend.route_tables.values() if entry.vpc_id != born and not entry.main_association_id)
    yield from list_resources("route table", tables)
    for gateway in backend.internet_gateways.values():
        if not (gateway.vpc and gateway.vpc.id == born):
            yield Resource(kind="internet gateway", id=gateway.id, region=region, tags=tags(gateway))
    yield from list_resources("vpc", (entry for entry in backend.vpcs.values() if entry.id != born))


def _of_efs() -> Iterator[Resource]:
    for region, backend in _regions(efs_backends):
        for target in backend.mount_targets_by_id.values():
            yield Resource(kind="mount target", id=target.mount_target_id, region=region)
        for system in backend.file_systems_by_id.values():
            tags = backend.tagging_service.get_tag_dict_for_resource(system.file_system_id)
            yield Resource(kind="file system", id=system.file_system_id, region=region, tags=tags)


def _of_scheduler() -> Iterator[Resource]:
    for region, backend in _regions(scheduler_backends):
        for group in backend.schedule_groups.values():
            for entry in group.schedules.values():
                yield Resource(kind="schedule", id=entry.name, region=region)
            if group.name != "default":
                yield Resource(kind="schedule group", id=group.name, region=region)


def _of_iam() -> Iterator[Resource]:
    for region, backend in _regions(iam_backends):
        for role in backend.roles.values():
            if not role.path.startswith("/aws-service-role/") and role.name != schedule.ROLE:
                yield Resource(kind="role", id=role.name, region=region)


def _regions(backends: BackendDict[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the state of a service in each region that has been used."""
    books = backends[ACCOUNT_ID]
    for region in sorted(dict.keys(books)):
        yield region, books[region]
