"""The prices for quotes and the ledger: those that AWS reported at the last deploy in a region, else those shipped with the
course."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from gpucourse.aws.pricing import PriceBook
from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.model.cloud import Market
from gpucourse.model.money import Rate
from gpucourse.workspace.files import read_record, write_record

_HIGHEST = Decimal(10_000)  # USD per hour: no correct price of one instance is above


@dataclass(frozen=True, kw_only=True)
class StoredPrice:
    """One hour of an instance, in USD, in a zone (empty: in any), with the source and the day of the price."""

    region: str
    instance_type: str
    market: Market
    zone: str
    usd_per_hour: Decimal
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class StoredPrices:
    """Every price that AWS reported to a deploy of this workspace, the newest of each."""

    prices: list[StoredPrice] = field(default_factory=list)
    version: int = 1


def read_prices(context: Context, region: str) -> PriceBook:
    """Return the prices of a region. If the file cannot be read, the prices that ship with the course apply, and `complaints`
    says so."""
    try:
        stored = _read(context)
    except MissingError as error:
        return PriceBook(region=region, complaints=(error.what,))
    return PriceBook(
        region=region,
        fresh=tuple(
            (
                (price.instance_type, price.market, price.zone),
                Rate(usd_per_hour=price.usd_per_hour, source=price.source, date=price.date),
            )
            for price in stored.prices
            if price.region == region and price.usd_per_hour.is_finite() and 0 <= price.usd_per_hour <= _HIGHEST
        ),
    )


def store_prices(context: Context, book: PriceBook) -> None:
    """Store what AWS reported, for the ledger and for commands while AWS does not answer. Raises StorageError, StackBusy."""
    with context.lock("prices", "store the prices"):
        try:
            others = [price for price in _read(context).prices if price.region != book.region]
        except MissingError:  # replaced by a readable file
            others = []
        own = [
            StoredPrice(
                region=book.region,
                instance_type=name,
                market=market,
                zone=zone,
                usd_per_hour=rate.usd_per_hour,
                source=rate.source,
                date=rate.date,
            )
            for (name, market, zone), rate in book.fresh
        ]
        write_record(context.paths.prices, StoredPrices(prices=[*others, *own]))


def _read(context: Context) -> StoredPrices:
    return read_record(context.paths.prices, StoredPrices) or StoredPrices()
