"""The cost of a lab. The shipped table is the offline answer; the Price List and the spot history refresh it.

Every amount has its source and date. Monthly prices become hourly ones by AWS's 730 hours a month.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from gpucourse.aws.offerings import instance_type
from gpucourse.aws.session import Account
from gpucourse.aws.tables import table
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.hardware import hardware
from gpucourse.model.cloud import LabNeed, Market
from gpucourse.model.money import Charge, Rate

PRICE_LIST = "AWS Price List"
SPOT_HISTORY = "EC2 spot price history"


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """Prices of one region. `fresh` contains what AWS answered, by (type, market, zone), with an empty zone for any."""

    region: str
    fresh: tuple[tuple[tuple[str, Market, str], Rate], ...] = ()
    complaints: tuple[str, ...] = ()

    def instance(self, name: str, market: Market = "on-demand", zone: str = "") -> Rate:
        """Return the price of one hour of an instance. For spot without a known zone: the most expensive zone. Raises
        MissingError without a price."""
        instance_type(name)
        known = [rate for (kind, bought, where), rate in self.fresh if (kind, bought) == (name, market) and where in {"", zone}]
        if not known and not zone:
            known = [rate for (kind, bought, _zone), rate in self.fresh if (kind, bought) == (name, market)]
        if known:
            return max(known, key=lambda rate: rate.usd_per_hour)
        return self._read_spot_price(name) if market == "spot" else self._read_on_demand_price(name)

    def disk(self) -> Rate:
        """Return the price of one hour of one GB of gp3."""
        return self._monthly("disk")

    def throughput(self, mb_s: int) -> tuple[int, Rate]:
        """Return how many MB/s of a gp3 disk with this throughput are paid for, and the price of one of them for an hour."""
        row, hours = table("prices")["throughput"], Decimal(table("prices")["hours_per_month"])
        rate = _rate(row, Decimal(row["usd_per_mb_s_month"]) / hours, self._price_note())
        return max(0, mb_s - row["included_mb_s"]), rate

    def storage(self) -> Rate:
        """Return the price of one hour of one GB of EFS Standard."""
        return self._monthly("storage")

    def address(self) -> Rate:
        """Return the price of one hour of one public IPv4 address, used or not."""
        row = table("prices")["address"]
        return _rate(row, row["usd_per_hour"])

    def burst(self, name: str) -> tuple[Decimal, Rate] | None:
        """Return how many vCPUs of that type can be used beyond what its price covers, and the price of one for an hour; None
        if the price covers all of them."""
        row = table("prices")["burst"]
        if name not in row["baseline"]:
            return None
        above = instance_type(name).vcpus * (1 - Decimal(row["baseline"][name]))
        return above, _rate(row, row["usd_per_vcpu_hour"], self._price_note())

    def _monthly(self, name: str) -> Rate:
        row, hours = table("prices")[name], Decimal(table("prices")["hours_per_month"])
        return _rate(row, Decimal(row["usd_per_gb_month"]) / hours, self._price_note())

    def _price_note(self) -> str:
        row = hardware().prices["on_demand"]
        home = row["region"]
        return "" if self.region in {home, *row["same_in"]} else f"the price of {home}; {self.region} may differ"

    def _read_on_demand_price(self, name: str) -> Rate:
        price = hardware().row(name).get("usd_per_hour")
        if price is None:
            raise MissingError(f"there is no price of {name} in the shipped table", hint="choose a type of the course")
        return _rate(hardware().prices["on_demand"], price, self._price_note())

    def _read_spot_price(self, name: str) -> Rate:
        low_high = hardware().row(name).get("spot_usd_per_hour", {}).get(self.region)
        if low_high is None:
            on_demand = self._read_on_demand_price(name)
            return replace(on_demand, note="no spot price is known here: the on-demand price, which spot never exceeds")
        low, high = low_high
        note = f"the dearest zone; the cheapest was ${low}" if low != high else ""
        return _rate(hardware().prices["spot"], high, note)


def _rate(row: Mapping[str, Any], usd_per_hour: str | Decimal, note: str = "") -> Rate:
    return Rate(usd_per_hour=Decimal(usd_per_hour), source=row["source"], date=row["date"], note=note)


def refresh_prices(book: PriceBook, account: Account, types: Iterable[str], now: datetime) -> PriceBook:
    """Return the book with today's prices of these types, on demand and spot, as far as AWS returns them.

    For a price that AWS does not return, the shipped one remains, and `complaints` says why.
    """
    fresh = dict(book.fresh)
    complaints: list[str] = []
    wanted = sorted(set(types))
    for ask in (_price_list, _spot_history):
        try:
            fresh.update(ask(account, wanted, now))
        except GpucourseError as error:
            complaints.append(error.what)
    return replace(book, fresh=tuple(fresh.items()), complaints=tuple(complaints))


def estimate(book: PriceBook, need: LabNeed, *, market: Market = "on-demand", zone: str = "") -> tuple[Charge, ...]:
    """Return what this lab costs an hour at most: instances, their root disks, their public addresses, shared storage."""
    charges: list[Charge] = []
    bursts: list[Charge] = []
    for machines in need.machines:
        name, bought = machines.instance_type, machines.market(market)
        rate = book.instance(name, bought, zone)
        units = Decimal(machines.count)
        charges.append(Charge(what=f"{units} x {name} ({bought})", kind="instance", units=units, rate=rate))
        if burst := book.burst(name):
            above, rate = burst
            bursts.append(Charge(what=f"CPU bursts of {units} x {name}, at most", kind="burst", units=units * above, rate=rate))
    count = sum(machines.count for machines in need.machines)
    disks = sum(machines.count * machines.disk_gib for machines in need.machines)
    charges += [*bursts, Charge(what=f"{disks} GB disk (gp3)", kind="disk", units=Decimal(disks), rate=book.disk())]
    paid = sum(machines.count * book.throughput(machines.disk_mb_s)[0] for machines in need.machines)
    if paid:
        rate = book.throughput(0)[1]
        charges.append(Charge(what=f"{paid} MB/s more of disk", kind="disk", units=Decimal(paid), rate=rate))
    addresses = f"{count} public address{'' if count == 1 else 'es'} (IPv4)"
    charges.append(Charge(what=addresses, kind="address", units=Decimal(count), rate=book.address()))
    if need.storage_gib:
        what = f"{need.storage_gib} GB shared storage (EFS)"
        charges.append(Charge(what=what, kind="storage", units=Decimal(need.storage_gib), rate=book.storage()))
    return tuple(charges)


def _price_list(account: Account, types: list[str], now: datetime) -> dict[tuple[str, Market, str], Rate]:
    rates: dict[tuple[str, Market, str], Rate] = {}
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
        prices = [price for item in items for price in _hourly(json.loads(item))]
        if prices:
            rate = Rate(usd_per_hour=max(prices), source=PRICE_LIST, date=now.date().isoformat())
            rates[name, "on-demand", ""] = rate
    return rates


def _hourly(item: dict[str, Any]) -> list[Decimal]:
    return [
        price
        for term in item.get("terms", {}).get("OnDemand", {}).values()
        for dimension in term.get("priceDimensions", {}).values()
        if (price := Decimal(dimension.get("pricePerUnit", {}).get("USD", "0"))) > 0 and dimension.get("unit", "Hrs") == "Hrs"
    ]


def _spot_history(account: Account, types: list[str], now: datetime) -> dict[tuple[str, Market, str], Rate]:
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
        for (name, zone), (_when, price) in newest.items()
    }
