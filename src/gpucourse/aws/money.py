"""Costs in USD, as Decimals. A cost is a charge over a period: a number of units, times their rate, times the hours between
two moments. Moments have a time zone.

The price book contains the rates that AWS returned, and the shipped rates for everything else. `estimate` returns the charges
of a planned lab, `find_charges` the charges of existing resources, and `query_billed_cost` the amount that AWS has billed.
Every rate has a source and a date. Monthly prices are divided by 730 hours, as AWS does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from gpucourse.aws import instances, resource_scan, tags
from gpucourse.aws.kinds import FILE_SYSTEM, VOLUME
from gpucourse.aws.offerings import instance_type
from gpucourse.aws.session import Account
from gpucourse.aws.tables import table
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.hardware import hardware
from gpucourse.model.cloud import CloudInstance, LabNeed, Market

PriceKey = tuple[str, Market, str]
Charged = Literal["instance", "burst", "disk", "address", "storage"]
PRICE_LIST = "AWS Price List"
SPOT_HISTORY = "EC2 spot price history"
_BILLED_STATES = {"pending", "running", "stopping"}
_GIB = Decimal(1 << 30)
_METRIC = "UnblendedCost"


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The price of one unit in USD per hour, with its source and the day on which it was read (ISO 8601).

    `note`: a remark about the price, for the user.
    """

    usd_per_hour: Decimal
    source: str
    date: str
    note: str = ""

    @property
    def origin(self) -> str:
        """Return where and when the price was read."""
        return f"{self.source}, {self.date}"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A number of units, each at the same rate.

    For an existing resource, `item` is its id in the cloud, and `since` its start if the cloud reports it.
    """

    what: str
    kind: Charged
    rate: Rate
    units: Decimal = Decimal(1)
    item: str = ""
    stack: str = ""
    module: str = ""
    market: Market = "on-demand"
    zone: str = ""
    since: datetime | None = None

    @property
    def per_hour(self) -> Decimal:
        """Return the cost of all units in USD per hour."""
        return self.units * self.rate.usd_per_hour


@dataclass(frozen=True, kw_only=True)
class Span:
    """A charge over a period. `ended`: None while the charge continues."""

    charge: Charge
    started: datetime
    ended: datetime | None = None
    reason: str = ""

    def cost(self, now: datetime, since: datetime | None = None, until: datetime | None = None) -> Decimal:
        """Return the cost up to now, or between two moments, in USD. An instance is charged for at least a minute."""
        first = max(self.started, since) if since else self.started
        last = min(self.ended or now, now)
        last = min(last, until) if until else last
        seconds = Decimal(str(max(0.0, (last - first).total_seconds())))
        if self.charge.kind == "instance" and since is None and until is None and now >= self.started:
            seconds = max(seconds, Decimal(60))
        return seconds * self.charge.per_hour / 3600


@dataclass(frozen=True, kw_only=True)
class Bill:
    """All recorded spans, in the order of their start. `damaged`: the number of lines that could not be read."""

    spans: tuple[Span, ...]
    damaged: int = 0

    def select(self, stack: str) -> Bill:
        """Return the part of the bill that belongs to one stack (the stack's uid)."""
        return replace(self, spans=tuple(span for span in self.spans if span.charge.stack == stack))

    def open(self) -> tuple[Span, ...]:
        """Return the spans whose charges still continue."""
        return tuple(span for span in self.spans if span.ended is None)

    def per_hour(self) -> Decimal:
        """Return the hourly cost of the spans that have not ended, in USD."""
        return usd_per_hour(span.charge for span in self.open())

    def total(self, now: datetime, since: datetime | None = None, until: datetime | None = None) -> Decimal:
        """Return the cost of everything up to now, or between two moments, in USD."""
        return sum((span.cost(now, since, until) for span in self.spans), Decimal(0))

    def sum_by(self, name: str, now: datetime) -> dict[str, Decimal]:
        """Return the cost up to now, in USD, for each value of one field of the charges.

        `name`: the field, such as `module`, `stack`, `kind`, `market`, `zone` or `item`.
        """
        totals: dict[str, Decimal] = {}
        for span in self.spans:
            key = str(getattr(span.charge, name))
            totals[key] = totals.get(key, Decimal(0)) + span.cost(now)
        return totals


def usd_per_hour(charges: Iterable[Charge]) -> Decimal:
    """Return the sum of these charges, in USD per hour."""
    return sum((charge.per_hour for charge in charges), Decimal(0))


def usd_over(per_hour: Decimal, time: timedelta | Decimal) -> Decimal:
    """Return the cost over a period, in USD. `time`: a timedelta or a number of hours."""
    return per_hour * time if isinstance(time, Decimal) else per_hour * Decimal(str(time.total_seconds())) / 3600


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """Prices of one region.

    `fresh`: the prices that AWS returned, by (type, market, zone); an empty zone means any zone.
    """

    region: str
    fresh: Mapping[PriceKey, Rate] = field(default_factory=dict)
    complaints: tuple[str, ...] = ()

    def instance(self, name: str, market: Market = "on-demand", zone: str = "") -> Rate:
        """Return the price of an instance per hour. For spot without a zone, return the price in the most expensive zone.

        Raises MissingError if there is no price.
        """
        instance_type(name)
        by_zone = {place: rate for (kind, bought, place), rate in self.fresh.items() if (kind, bought) == (name, market)}
        if rates := [rate for place, rate in by_zone.items() if not zone or place in {"", zone}]:
            return max(rates, key=lambda rate: rate.usd_per_hour)
        return self._read_spot_price(name) if market == "spot" else self._read_on_demand_price(name)

    def unit(self, name: str) -> Rate:
        """Return the price of one unit, per hour.

        A unit is a GB of `disk` (gp3) or of shared `storage` (EFS), an `address`, a MB/s of `throughput` beyond the included
        amount, or a vCPU of `burst`.
        """
        row = table("prices")[name]
        key = next(key for key in row if key.startswith("usd_per_"))
        hours = table("prices")["hours_per_month"] if key.endswith("_month") else 1
        return _make_rate(row, Decimal(row[key]) / hours, "" if name == "address" else self._price_note())

    def _price_note(self) -> str:
        row = hardware().prices["on_demand"]
        base_region = row["region"]
        return "" if self.region in {base_region, *row["same_in"]} else f"the price of {base_region}; {self.region} may differ"

    def _read_on_demand_price(self, name: str) -> Rate:
        price = hardware().row(name).get("usd_per_hour")
        if price is None:
            raise MissingError(f"there is no price for {name} in the shipped table", hint="choose a type of the course")
        return _make_rate(hardware().prices["on_demand"], price, self._price_note())

    def _read_spot_price(self, name: str) -> Rate:
        low_high = hardware().row(name).get("spot_usd_per_hour", {}).get(self.region)
        if low_high is None:
            on_demand = self._read_on_demand_price(name)
            return replace(on_demand, note="no spot price is known here; this is the on-demand price, which spot never exceeds")
        low, high = low_high
        note = f"the most expensive zone; the cheapest was ${low}" if low != high else ""
        return _make_rate(hardware().prices["spot"], high, note)


def _paid_throughput(mb_s: int) -> int:
    """Return how many MB/s of a gp3 disk's throughput are charged."""
    return max(0, mb_s - int(table("prices")["throughput"]["included_mb_s"]))


def _count_bursts(name: str) -> Decimal:
    """Return how many vCPUs an instance of this type can use beyond those that its price covers."""
    baseline = table("prices")["burst"]["baseline"].get(name, 1)
    return instance_type(name).vcpus * (1 - Decimal(baseline))


def _make_rate(row: Mapping[str, Any], usd_per_hour: str | Decimal, note: str = "") -> Rate:
    return Rate(usd_per_hour=Decimal(usd_per_hour), source=row["source"], date=row["date"], note=note)


def refresh_prices(book: PriceBook, account: Account, types: Iterable[str], now: datetime) -> PriceBook:
    """Return the book with today's prices of these types, on demand and spot.

    If AWS does not return a price, the shipped one remains, and `complaints` says why.
    """
    fresh = dict(book.fresh)
    complaints: list[str] = []
    names = sorted(set(types))
    for ask in (_query_price_list, _query_spot_history):
        try:
            fresh.update(ask(account, names, now))
        except GpucourseError as error:
            complaints.append(error.what)
    return replace(book, fresh=fresh, complaints=tuple(complaints))


def estimate(book: PriceBook, need: LabNeed, *, market: Market = "on-demand", zone: str = "") -> tuple[Charge, ...]:
    """Return the maximum charges of this lab per hour: instances, CPU bursts, root disks, public addresses, shared storage."""
    charges: list[Charge] = []
    bursts: list[Charge] = []
    count = disks = throughput = 0
    for machines in need.machines:
        name, bought = machines.instance_type, machines.market(market)
        description, rate = f"{machines.count} x {name} ({bought})", book.instance(name, bought, zone)
        charges.append(Charge(what=description, kind="instance", units=Decimal(machines.count), rate=rate))
        if burst_vcpus := _count_bursts(name):
            description = f"CPU bursts of {machines.count} x {name}, at most"
            bursts.append(Charge(what=description, kind="burst", units=machines.count * burst_vcpus, rate=book.unit("burst")))
        count += machines.count
        disks += machines.count * machines.disk_gib
        throughput += machines.count * _paid_throughput(machines.disk_mb_s)
    other_charges: tuple[tuple[Charged, str, int, str], ...] = (
        ("disk", "disk", disks, f"{disks} GB disk (gp3)"),
        ("disk", "throughput", throughput, f"{throughput} MB/s of additional disk throughput"),
        ("address", "address", count, f"{count} public address{'' if count == 1 else 'es'} (IPv4)"),
        ("storage", "storage", need.storage_gib, f"{need.storage_gib} GB shared storage (EFS)"),
    )
    shared = [
        Charge(what=description, kind=kind, units=Decimal(units), rate=book.unit(unit))
        for kind, unit, units, description in other_charges
        if units
    ]
    return (*charges, *bursts, *shared)


def _query_price_list(account: Account, types: list[str], now: datetime) -> dict[PriceKey, Rate]:
    rates: dict[PriceKey, Rate] = {}
    for name in types:
        filters = {
            "instanceType": name,
            "regionCode": account.region,
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
        }
        items = account.pages(
            "pricing",
            "get_products",
            "PriceList",
            ServiceCode="AmazonEC2",
            Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in filters.items()],
        )
        prices = [price for item in items for price in _list_hourly_prices(json.loads(item))]
        if prices:
            rate = Rate(usd_per_hour=max(prices), source=PRICE_LIST, date=now.date().isoformat())
            rates[name, "on-demand", ""] = rate
    return rates


def _list_hourly_prices(item: dict[str, Any]) -> list[Decimal]:
    return [
        price
        for term in item.get("terms", {}).get("OnDemand", {}).values()
        for dimension in term.get("priceDimensions", {}).values()
        if (price := Decimal(dimension.get("pricePerUnit", {}).get("USD", "0"))) > 0 and dimension.get("unit", "Hrs") == "Hrs"
    ]


def _query_spot_history(account: Account, types: list[str], now: datetime) -> dict[PriceKey, Rate]:
    newest: dict[tuple[str, str], tuple[datetime, Decimal]] = {}
    for row in account.pages(
        "ec2",
        "describe_spot_price_history",
        "SpotPriceHistory",
        InstanceTypes=types,
        ProductDescriptions=["Linux/UNIX"],
        StartTime=now,
    ):
        key = row["InstanceType"], row["AvailabilityZone"]
        if key not in newest or newest[key][0] < row["Timestamp"]:
            newest[key] = row["Timestamp"], Decimal(row["SpotPrice"])
    return {
        (name, "spot", zone): Rate(usd_per_hour=price, source=SPOT_HISTORY, date=now.date().isoformat())
        for (name, zone), (_timestamp, price) in newest.items()
    }


def find_charges(account: Account, book: PriceBook, *, stack: str) -> list[Charge]:
    """Return every current charge of this stack. A stopped instance costs only its disk.

    A spot instance is charged at the price in its zone, if the book contains it. Raises the errors of `Account.call`.
    """
    project_tags = tags.make_project_tags(stack=stack)
    cloud_instances = instances.find(account, stack=stack)
    charges = [
        charge for instance in cloud_instances if instance.state in _BILLED_STATES for charge in _charge_vm(book, instance)
    ]
    for volume in resource_scan.items(account, VOLUME, project_tags):
        charges += _charge_disk(book, volume, stack=stack)
    module = next((instance.module for instance in cloud_instances if instance.module), "")
    charges += [
        Charge(
            item=system["FileSystemId"],
            kind="storage",
            what="shared storage",
            stack=stack,
            module=tags.read(system).get("Module", module),
            units=Decimal(system["SizeInBytes"]["Value"]) / _GIB,
            since=system["CreationTime"],
            rate=book.unit("storage"),
        )
        for system in resource_scan.items(account, FILE_SYSTEM, project_tags)
    ]
    return charges


def match_ended_instances(cloud_instances: Iterable[CloudInstance]) -> dict[str, CloudInstance]:
    """Return the ended and stopped instances that AWS still lists, by ledger item.

    Each instance has two items: itself and its address.
    """
    by_id: dict[str, CloudInstance] = {}
    for instance in cloud_instances:
        if instance.state not in _BILLED_STATES:
            by_id[instance.id] = by_id[_address_item(instance.id)] = instance
    return by_id


def _address_item(instance: str) -> str:
    """Return the ledger's name for the public address of an instance."""
    return f"{instance}:ipv4"


def _charge_disk(book: PriceBook, volume: dict[str, Any], *, stack: str) -> list[Charge]:
    charge = Charge(
        item=volume["VolumeId"],
        kind="disk",
        what=f"{volume['Size']} GB {volume['VolumeType']}",
        stack=stack,
        module=tags.read(volume).get("Module", ""),
        units=Decimal(volume["Size"]),
        zone=volume["AvailabilityZone"],
        since=volume["CreateTime"],
        rate=book.unit("disk"),
    )
    throughput = _paid_throughput(volume.get("Throughput", 0))
    if not throughput:
        return [charge]
    description, rate = f"{throughput} MB/s of additional disk throughput", book.unit("throughput")
    return [charge, replace(charge, item=f"{charge.item}:throughput", what=description, units=Decimal(throughput), rate=rate)]


def _charge_vm(book: PriceBook, instance: CloudInstance) -> list[Charge]:
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
        charge,
        item=_address_item(instance.id),
        kind="address",
        what="public IPv4",
        market="on-demand",
        rate=book.unit("address"),
    )
    return [charge, address]


@dataclass(frozen=True, kw_only=True)
class BilledCost:
    """The cost that AWS has billed from the day `first` up to the day `until`, in USD. The day `until` is not included.

    `services`: the cost of each service, by AWS's name for it.
    `requests`: the number of requests made, each of which costs a cent.
    `final`: False if AWS may still correct the cost.
    """

    first: date
    until: date
    services: tuple[tuple[str, Decimal], ...]
    requests: int
    final: bool

    @property
    def usd(self) -> Decimal:
        """Return the cost of all services together, in USD."""
        return sum((amount for _service, amount in self.services), Decimal(0))


def query_billed_cost(account: Account, first: date, last: date) -> BilledCost:
    """Return the billed cost of everything with the course's tag, from the first day to the last, both included.

    The cost is zero if the tag `Project` is not activated as a cost allocation tag. Raises the errors of `Account.call`.
    """
    until = last + timedelta(days=1)
    totals: dict[str, Decimal] = {}
    requests, page, final = 0, "", True
    while True:
        continuation = {"NextPageToken": page} if page else {}
        answer = account.call(
            "ce",
            "get_cost_and_usage",
            TimePeriod={"Start": first.isoformat(), "End": until.isoformat()},
            Granularity="MONTHLY",  # so that there are fewer pages
            Metrics=[_METRIC],
            Filter={"Tags": {"Key": "Project", "Values": [tags.PROJECT]}},
            GroupBy=[{"Type": "DIMENSION", "Key": "SERVICE"}],
            **continuation,
        )
        requests += 1
        for period in answer["ResultsByTime"]:
            final = final and not period.get("Estimated", False)
            for group in period.get("Groups", ()):
                name = str(group["Keys"][0])
                totals[name] = totals.get(name, Decimal(0)) + Decimal(group["Metrics"][_METRIC]["Amount"])
        page = str(answer.get("NextPageToken") or "")
        if not page:
            services = tuple(sorted(totals.items(), key=lambda pair: (-pair[1], pair[0])))  # largest first
            return BilledCost(first=first, until=until, services=services, requests=requests, final=final)
