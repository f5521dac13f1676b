"""The scales of a chart, which turn values into positions, and their ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpucourse.figures.axes import short_number
from gpucourse.units import format_bytes

MAX_TICKS = 8
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """One axis: from `low` to `high` in the values' unit, drawn from `start` to `end`. Each of `ticks` is (value, label)."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """Return the position of the value in the drawing."""
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 2)


def make_scale(
    values: Sequence[float],
    start: float,
    end: float,
    *,
    log: bool = False,
    from_zero: bool = False,
    sizes: bool = False,
    at_values: bool = False,
) -> Scale:
    """Return the scale of an axis that shows all values. `from_zero`: the axis includes 0. `sizes`: the values are bytes.
    `at_values`: the ticks are at the values themselves, if there are few."""
    low, high = min(values), max(values)
    if log:
        low, high = (low / 1.15, high * 1.15) if low < high else (low / 2, high * 2)
        ticks = _list_sizes(low, high) if sizes else _list_powers(low, high)
    else:
        low, high = (min(0.0, low), max(0.0, high)) if from_zero else (low, high)
        room = (high - low) * 0.05 or abs(high) * 0.5 or 1.0
        low, high = (
            low if from_zero and low == 0 else low - room,
            high if from_zero and high == 0 > low else high + room,
        )
        ticks = _list_steps(low, high)
    if at_values and not sizes and len(set(values)) <= MAX_TICKS:
        ticks = sorted(set(values))
    name = format_size if sizes else short_number
    return Scale(low=low, high=high, start=start, end=end, log=log, ticks=tuple((value, name(value)) for value in ticks))


def make_word_scale(words: Sequence[str], start: float, end: float) -> Scale:
    """Return a scale that shows the words at 0, 1, 2 and so on."""
    return Scale(low=-0.5, high=len(words) - 0.5, start=start, end=end, log=False, ticks=tuple(enumerate(words)))


def format_size(count: float) -> str:
    """Return a number of bytes as an axis label: `1 MiB`."""
    return format_bytes(count).replace(".0 ", " ")


def _list_steps(low: float, high: float) -> list[float]:
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in STEPS if step * power >= rough)
    first = math.ceil(low / step)
    return [float(f"{number * step:.12g}") for number in range(first, math.floor(high / step) + 1)]


def _list_powers(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    subs = (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
    ticks = [float(f"{sub * 10.0**power:.12g}") for power in powers for sub in subs if low <= sub * 10.0**power <= high]
    return ticks[:: math.ceil(len(ticks) / 12)] if ticks else [low]


def _list_sizes(low: float, high: float) -> list[float]:
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    step = math.ceil(len(powers) / MAX_TICKS) if powers else 1
    return [2.0**power for power in powers[::step]] or [low]
