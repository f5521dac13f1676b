"""What tokens cost: from a price an hour and tokens a second. The prices stand in prices.json, with date and source."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Price:
    """An instance with one GPU. `spot` is the lowest and the highest of a region's zones; None where it is not known."""

    instance: str
    gpu: str
    usd_per_hour: float
    spot: tuple[float, float] | None


def prices() -> tuple[list[Price], dict]:
    """The prices of prices.json, and where and when they were read."""
    data = json.loads(Path(__file__).resolve().with_name("prices.json").read_text(encoding="utf-8"))
    listed = [
        Price(row["instance"], row["gpu"], row["usd_per_hour"], row["spot_usd_per_hour"] and tuple(row["spot_usd_per_hour"]))
        for row in data["instances"]
    ]
    return listed, {"on_demand": data["on_demand"], "spot": data["spot"]}


def usd_per_million(usd_per_hour: float, tok_per_s: float, utilisation_percent: float = 100.0) -> float:
    """Dollars for a million tokens: an hour's price over an hour's tokens. Idle hours are paid, too."""
    return usd_per_hour / (tok_per_s * 3600 * utilisation_percent / 100) * 1e6


def break_even(price: float, other: float) -> float:
    """How many times as fast as at `other` dollars an hour a GPU at `price` must be, to make tokens as cheaply."""
    return price / other


def kwh_per_million(watts: float, tok_per_s: float) -> float:
    """Energy of the GPU for a million tokens."""
    return watts / tok_per_s * 1e6 / 3600 / 1e3
