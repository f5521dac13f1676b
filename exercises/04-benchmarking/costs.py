"""The cost of tokens, from a price per hour and tokens per second. The prices are in gpus.json, with date and source."""

from __future__ import annotations

from dataclasses import dataclass

import gpus


@dataclass(frozen=True)
class Price:
    """One GPU of an instance that has `gpus`, at its share of the price. `spot` is the lowest and the highest price in a
    region's zones, also for one GPU's share; None if it is not known."""

    instance: str
    gpu: str
    gpus: int
    usd_per_hour: float
    spot: tuple[float, float] | None


def prices() -> tuple[list[Price], dict]:
    """Return the prices of the instances that the course offers, and where and when they were read.

    A GPU that it does not offer, such as an A100, has one row: a GPU's share of the smallest instance with a price.
    """
    sources = gpus.document()["prices"]
    region = sources["on_demand"]["region"]
    rows = [_price(gpu.gpu, name, gpu.aws["types"][name], region) for gpu in gpus.table() for name in _instances(gpu.aws)]
    return rows, {name: {"source": row["source"], "date": row["date"], "region": region} for name, row in sources.items()}


def _instances(aws: dict) -> list[str]:
    if aws.get("offered"):
        return [f"{aws['family']}.{size}" for size in aws["offered"]]
    priced = [name for name, row in aws.get("types", {}).items() if "usd_per_hour" in row and row["gpus"]]
    return sorted(priced, key=lambda name: float(aws["types"][name]["usd_per_hour"]))[:1]


def _price(gpu: str, name: str, row: dict, region: str) -> Price:
    spot, gpus = row.get("spot_usd_per_hour", {}).get(region), row["gpus"]
    zones = (float(spot[0]) / gpus, float(spot[1]) / gpus) if spot else None
    return Price(name, gpu, gpus, float(row["usd_per_hour"]) / gpus, zones)


def usd_per_million(usd_per_hour: float, tok_per_s: float, utilisation_percent: float = 100.0) -> float:
    """Return dollars per million tokens: the price of an hour over the tokens of an hour. Idle hours are paid for, too."""
    return usd_per_hour / (tok_per_s * 3600 * utilisation_percent / 100) * 1e6


def break_even(price: float, other_price: float) -> float:
    """Return how many times as fast as a GPU at `other_price` dollars an hour one at `price` must be to generate tokens as
    cheaply."""
    return price / other_price


def kwh_per_million(watts: float, tok_per_s: float) -> float:
    """Return the energy that the GPU uses for a million tokens, in kWh."""
    return watts / tok_per_s * 1e6 / 3600 / 1e3
