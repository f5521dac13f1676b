"""The current cost of a stack, item by item, as AWS lists it: instances, their disks, their addresses, shared storage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from gpucourse.aws import instances, resource_scan, tags
from gpucourse.aws.kinds import VOLUME
from gpucourse.aws.pricing import PriceBook
from gpucourse.aws.session import Account
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.money import Charge

_BILLED = {"pending", "running", "stopping"}
_GIB = Decimal(1 << 30)


def find_charges(account: Account, book: PriceBook, *, stack: str) -> list[Charge]:
    """Return every charge of this stack that applies at this moment. A stopped instance costs only its disk.

    Spot instances are charged at the price of their zone if the book has it. Raises the errors of `Account.call`.
    """
    wanted = tags.make_project_tags(stack=stack)
    cloud_instances = instances.find(account, stack=stack)
    charges = [charge for instance in cloud_instances if instance.state in _BILLED for charge in _of_instance(book, instance)]
    for volume in resource_scan.items(account, VOLUME, wanted):
        charges += _of_volume(book, volume, stack=stack)
    module = next((instance.module for instance in cloud_instances if instance.module), "")
    charges += [
        Charge(
            item=system["FileSystemId"],
            kind="storage",
            what="shared storage",
            stack=stack,
            module=tags.of(system).get("Module", module),
            units=Decimal(system["SizeInBytes"]["Value"]) / _GIB,
            since=system["CreationTime"],
            rate=book.storage(),
        )
        for system in resource_scan.file_systems(account, wanted)
    ]
    return charges


def match_ended_instances(cloud_instances: Iterable[CloudInstance]) -> dict[str, CloudInstance]:
    """Return the instances that AWS still lists as ended or stopped, under every ledger item that ended with them."""
    ended: dict[str, CloudInstance] = {}
    for instance in cloud_instances:
        if instance.state not in _BILLED:
            ended[instance.id] = ended[address_item(instance.id)] = instance
    return ended


def address_item(instance: str) -> str:
    """Return the ledger's name for the public address of an instance."""
    return f"{instance}:ipv4"


def _of_volume(book: PriceBook, volume: dict[str, Any], *, stack: str) -> list[Charge]:
    charge = Charge(
        item=volume["VolumeId"],
        kind="disk",
        what=f"{volume['Size']} GB {volume['VolumeType']}",
        stack=stack,
        module=tags.of(volume).get("Module", ""),
        units=Decimal(volume["Size"]),
        zone=volume["AvailabilityZone"],
        since=volume["CreateTime"],
        rate=book.disk(),
    )
    paid, rate = book.throughput(volume.get("Throughput", 0))
    if not paid:
        return [charge]
    more = replace(charge, item=f"{charge.item}:throughput", what=f"{paid} MB/s more of disk", units=Decimal(paid), rate=rate)
    return [charge, more]


def _of_instance(book: PriceBook, instance: CloudInstance) -> list[Charge]:
    charge = Charge(
        item=instance.id,
        kind="instance",
        what=instance.instance_type,
        stack=instance.stack,
        module=instance.module,
        market=instance.market,
        zone=instance.zone,
        since=instance.launched,
        rate=book.instance(instance.instance_type, instance.market, instance.zone),
    )
    if not instance.address:
        return [charge]
    address = replace(
        charge, item=address_item(instance.id), kind="address", what="public IPv4", market="on-demand", rate=book.address()
    )
    return [charge, address]
