"""Shared by the benchmarks: the median of several, taken in turn so that a busy moment hits both sides; one row a promise."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """One promise: what was measured, what it is compared with, what was promised, whether that held."""

    what: str
    ours_s: float
    theirs: str
    theirs_s: float | None
    promise: str
    held: bool

    @property
    def ratio(self) -> str:
        """Ours divided by theirs."""
        return f"{self.ours_s / self.theirs_s:.2f}x" if self.theirs_s else ""


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def medians(*works: Callable[[], object], rounds: int) -> list[float]:
    """The median seconds of each, every round running all of them in turn."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for times, work in zip(taken, works, strict=True):
            times.append(seconds(work))
    return [statistics.median(times) for times in taken]


def table(rows: list[Row]) -> str:
    """The rows as text."""
    head = ("what", "ours", "compared with", "theirs", "ratio", "promise", "held")
    body = [
        (
            row.what,
            f"{row.ours_s:.3f} s",
            row.theirs,
            "" if row.theirs_s is None else f"{row.theirs_s:.3f} s",
            row.ratio,
            row.promise,
            "yes" if row.held else "NO",
        )
        for row in rows
    ]
    widths = [max(len(line[index]) for line in (head, *body)) for index in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in (head, *body)
    )
