"""The numbers on an axis: plain numbers with few ticks, and sizes in bytes with ticks at powers of two."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_MAX_TICKS = 9


def number_axis(axis: Axis, *, whole: bool, log: bool) -> None:
    """Label an axis with plain numbers, without powers of 10. If `whole`, put ticks only at whole numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if log:
        low, high = sorted(axis.get_view_interval())
        narrow = high / low < 200
        axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(nbins=7, integer=whole, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def point_axis(axis: Axis, places: Sequence[float]) -> None:
    """Put a tick at every measured value, for an axis with few values."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(sorted(set(places))))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def short_number(value: float) -> str:
    """Return a short form of a number, as an axis label: `0.25`, `1,500`, `250 k`, `1.5 M`.

    A whole number below 100 million that a letter would not shorten is written out: `262,144`.
    """
    if abs(value) < 1e8 and value == round(value) and value % (1e4 if abs(value) >= 1e6 else 10):
        return f"{value:,.0f}"
    for minimum, scale, letter in ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e5, 1e3, "k")):
        if abs(value) >= minimum:
            return f"{value / scale:,.6g} {letter}"
    return f"{value:,.12g}"


def format_bar(value: float) -> str:
    """Return the label of a bar: a whole number below 10,000 as it is, any other number rounded to three digits."""
    return short_number(value if value == round(value) and abs(value) < 10_000 else float(f"{value:.3g}"))


def size_axis(axis: Axis, sizes: Sequence[float], *, log: bool) -> None:
    """Label an axis with sizes in bytes, written 4 B, 1 KiB, 1 MiB. On a logarithmic axis, the ticks are at powers of two."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    if log and sizes:
        low, high = math.floor(math.log2(min(sizes))), math.ceil(math.log2(max(sizes)))
        step = max(1, math.ceil((high - low) / _MAX_TICKS))
        step = step + step % 2 if step > 1 else 1
        axis.set_major_locator(FixedLocator([2.0**power for power in range(low, high + 1, step)]))
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(MaxNLocator(nbins=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_bytes(value).replace(".0 ", " ")))


def wrap_words(words: Sequence[str]) -> list[str]:
    """Return the labels under bars, the long ones broken into lines. The more bars there are, the shorter the lines."""
    width = max(10, 72 // max(1, len(words)))
    return [textwrap.fill(word, width) for word in words]
