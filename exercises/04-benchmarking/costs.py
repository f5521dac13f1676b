"""Compute the cost of tokens from a price per hour and tokens per second. gpus.json has the prices, their date and their
source."""

from __future__ import annotations

from dataclasses import dataclass

import gpus


@dataclass(frozen=True)
class Price:
    """The price of one GPU: its share of the price of an instance with `gpus` GPUs.

    `spot` is the lowest and the highest spot price of that share in any zone of a region, or None if it is unknown.
    """

    instance: str
    gpu: str
    gpus: int
    usd_per_hour: float
    spot: tuple[float, float] | None


def prices() -> tuple[list[Price], dict]:
    """Return the prices of the instances that the course offers, and the source and date of these prices.

    A GPU that the course does not offer, such as an A100, has one row: its share of the cheapest instance with such GPUs.
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
    """Return dollars per million tokens: the hourly price divided by the tokens of an hour. Idle hours are paid for, too."""
    return usd_per_hour / (tok_per_s * 3600 * utilisation_percent / 100) * 1e6


def break_even(price: float, other_price: float) -> float:
    """Return how many times as fast a GPU at `price` dollars an hour must be as one at `other_price`, so that tokens cost the
    same."""
    return price / other_price


def kwh_per_million(watts: float, tok_per_s: float) -> float:
    """Return the energy that the GPU uses for a million tokens, in kWh."""
    return watts / tok_per_s * 1e6 / 3600 / 1e3
