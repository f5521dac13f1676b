"""Another solution of 1.3, with torch: the trapezoidal rule over the known powers, and a weighted mean of the utilisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch


class Sample(NamedTuple):
    """The monitor's readings at one moment."""

    at_ms: float
    power_w: float | None
    utilisation_percent: float | None


def summarise(recording: Sequence[Sample]) -> dict[str, float]:
    """Return the energy in joules, the mean power in watts and the mean utilisation in percent."""
    values = [[float("nan") if value is None else value for value in sample] for sample in recording]
    rows = torch.tensor(values, dtype=torch.float64)
    at, power, busy = rows.unbind(dim=1)
    has_power = ~power.isnan()
    energy = torch.trapezoid(power[has_power], at[has_power] / 1000).item()
    weights = at.diff() * ~busy[1:].isnan()
    mean = (weights * busy[1:].nan_to_num()).sum() / weights.sum()
    return {"energy_j": energy, "mean_power_w": 1000 * energy / (at[-1] - at[0]).item(), "utilisation_percent": mean.item()}
