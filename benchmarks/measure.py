"""Shared by the benchmarks: medians of times taken in turn, so that a busy moment affects both sides; one row per promise.

What fails is a row, too, with the reason: the other rows are measured all the same.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

LONGEST_REASON = 200


@dataclass(frozen=True, kw_only=True)
class Row:
    """One promise: what was measured, what it is compared with, what was promised, whether that held.

    `failure` is the reason why it could not be measured; then there are no seconds.
    """

    what: str
    ours_s: float | None
    theirs: str = ""
    theirs_s: float | None = None
    promise: str = ""
    held: bool
    failure: str = ""

    @property
    def ratio(self) -> str:
        """Ours divided by theirs."""
        return f"{self.ours_s / self.theirs_s:.2f}x" if self.ours_s is not None and self.theirs_s else ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of the table's columns."""
        held = f"failed: {self.failure}" if self.failure else "yes" if self.held else "NO"
        return (
            self.what,
            _format_seconds(self.ours_s),
            self.theirs,
            _format_seconds(self.theirs_s),
            self.ratio,
            self.promise,
            held,
        )


def attempt(what: str, work: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """The rows of `work`, each as soon as it is measured; where `work` raises, one more row named `what` with the reason.

    The helpers of the tests raise pytest's own exceptions where a part of the system is missing.
    """
    import pytest  # not at the top: the proof on a GPU runs where the tools of the tests are not installed

    try:
        yield from work()
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:  # noqa: BLE001  whatever it is, it is the row's reason
        yield Row(what=what, ours_s=None, held=False, failure=_reason(error))


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
    body = [row.cells for row in rows]
    widths = [max(len(line[index]) for line in (head, *body)) for index in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in (head, *body)
    )


def _format_seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3f} s"


def _reason(error: BaseException) -> str:
    """One line: the last that a command wrote to standard error, else what the error says."""
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else None
    text = said.decode(errors="replace") if isinstance(said, bytes) else said or ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = f"{error}: {lines[-1]}" if lines else str(error) or type(error).__name__
    return " ".join(words.split())[:LONGEST_REASON]
