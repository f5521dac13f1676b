"""The instance types that exist, and the zones of a region that offer them.

The properties of a type (vCPUs, GPUs, memory, quota) come from the hardware table. AWS is asked each time which zones offer a
type, because price lists still contain types that no zone offers now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from gpucourse.aws.policy import PARTITION
from gpucourse.aws.session import Account, find_partition
from gpucourse.errors import UnknownName, UsageError
from gpucourse.hardware import Hardware, hardware
from gpucourse.model.cloud import InstanceType, Offers, Placement

DEFAULT_REGION = "us-east-2"
REGIONS = ("us-east-2", "us-east-1", "us-west-2")


@cache
def instance_types() -> dict[str, InstanceType]:
    """Return every type in the shipped table, by name. Retired types are included, and marked as such."""
    return {kind.name: kind for kind in types_of(hardware())}


def types_of(table: Hardware) -> Iterator[InstanceType]:
    """Return every instance type in a hardware table."""
    for rented in table.rented:
        for name, row in rented.types.items():
            yield InstanceType(
                name=name,
                vcpus=row["vcpus"],
                gpus=row["gpus"],
                gpu=rented.gpu,
                cluster_group=row.get("cluster_group", True),
                quota={market: code for market, (code, _name) in table.quotas[rented.quota].by_market.items()},
                retired=rented.retired,
            )


def instance_type(name: str) -> InstanceType:
    """Return the type of that name. Raises UnknownName for an unknown type, UsageError for a type that AWS has retired."""
    by_name = instance_types()
    if name not in by_name:
        raise UnknownName("instance type", name, [kind.name for kind in by_name.values() if not kind.retired])
    kind = by_name[name]
    if kind.retired:
        raise UsageError(f"AWS has retired {name} ({kind.gpu})", hint=kind.retired)
    return kind


def type_for(gpu: str, size: str = "xlarge") -> InstanceType:
    """Return the type with that GPU (`t4`, `l4`, ...) and size. If only one size is offered, return the type in that size.

    Raises UnknownName, UsageError.
    """
    word = gpu.lower()
    table = hardware()
    for rented in table.rented:
        if rented.choice == word and rented.retired:
            raise UsageError(f"there is no {gpu} to rent: {rented.retired}", hint=f"choose one of {', '.join(table.choices)}")
        if rented.choice == word and rented.offered:
            type_name = rented.offered[0] if len(rented.offered) == 1 else size
            return instance_type(f"{rented.family}.{type_name}")
    raise UnknownName("GPU", gpu, table.choices)


def validate_region(name: str) -> str:
    """Return `name` if it has the form of an AWS region; AWS decides whether the region exists.

    Raises UsageError for any other form. Also raises it for a region of another partition, where accounts and prices differ.
    """
    partition = read_partition(name)
    if partition != PARTITION:
        raise UsageError(
            f"{name} is a region of AWS's partition {partition}; the course has only prices and quotas of {PARTITION}",
            hint=f"a region of the partition {PARTITION}, such as {', '.join(REGIONS)}",
        )
    return name


def read_partition(region: str) -> str:
    """Return the partition of a region, as used in ARNs. For a region that boto3 does not know, return the course's partition.

    Raises UsageError for text that is not the name of a region.
    """
    partition = find_partition(region)
    if not partition and not re.fullmatch(r"[a-z]{2}(-[a-z]+)+-[0-9]", region):
        raise UsageError(f"'{region}' is not the name of an AWS region", hint=f"such as {', '.join(REGIONS)}")
    return partition or PARTITION


def zones(account: Account) -> tuple[str, ...]:
    """Return the names of the availability zones that are open to everyone.

    Local zones and zones that need an opt-in are left out.
    """
    filters = [
        {"Name": "opt-in-status", "Values": ["opt-in-not-required"]},
        {"Name": "zone-type", "Values": ["availability-zone"]},
        {"Name": "state", "Values": ["available"]},
    ]
    described = account.call("ec2", "describe_availability_zones", Filters=filters)["AvailabilityZones"]
    return tuple(sorted(zone["ZoneName"] for zone in described))


def offers(account: Account, types: Iterable[str]) -> Offers:
    """Return which zones currently offer which of these types, according to AWS."""
    type_names = sorted(set(types))
    names = zones(account)
    by_type: dict[str, set[str]] = {name: set() for name in type_names}
    for offer in account.pages(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": type_names}],
    ):
        if offer["Location"] in names and offer["InstanceType"] in by_type:
            by_type[offer["InstanceType"]].add(offer["Location"])
    zones_by_type = {name: frozenset(zone_names) for name, zone_names in by_type.items()}
    return Offers(region=account.region, by_type=zones_by_type, zones=names)


def first_attempt(zone_offers: Offers, instance_type: str, *, with_types: Iterable[str] = ()) -> Placement | None:
    """Return the place to try first: the first zone that offers this type and all of `with_types`. None if no zone does."""
    common = zone_offers.find_common_zones(frozenset({instance_type, *with_types}))
    return Placement(zone=common[0], instance_type=instance_type) if common else None
