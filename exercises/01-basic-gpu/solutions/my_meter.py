"""A solution of 1.3: energy by the trapezoidal rule between known powers; utilisation weighted by the time that it
describes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple


class Sample(NamedTuple):
    """The monitor's readings at one moment."""

    at_ms: float
    power_w: float | None
    utilisation_percent: float | None


def summarise(recording: Sequence[Sample]) -> dict[str, float]:
    """Return the energy in joules, the mean power in watts and the mean utilisation in percent."""
    readings = [(sample.at_ms / 1e3, sample.power_w) for sample in recording if sample.power_w is not None]
    energy = 0.0
    for (start, low), (end, high) in itertools.pairwise(readings):
        energy += (end - start) * (low + high) / 2
    seconds = readings[-1][0] - readings[0][0]
    busy = watched = 0.0
    for earlier, sample in itertools.pairwise(recording):
        if sample.utilisation_percent is not None:
            stretch = sample.at_ms - earlier.at_ms
            busy += stretch * sample.utilisation_percent
            watched += stretch
    return {"energy_j": energy, "mean_power_w": energy / seconds, "utilisation_percent": busy / watched}
