"""Rows and times for all benchmarks: one row per promise, and medians of times taken alternately, so that a busy moment affects
both sides.

A failure becomes a row with the reason, and the other rows are still measured.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

MAX_REASON = 200


@dataclass(frozen=True, kw_only=True)
class Row:
    """One promise: `ours` is at most `limit` (at least, with `is_minimum`).

    `theirs` names the alternative that it is compared with. `failure` is the reason if it could not be measured; the row then
    has no figure.
    """

    what: str
    ours: float | None
    unit: str = "s"
    theirs: str = ""
    theirs_value: float | None = None
    limit: float = 0.0
    is_minimum: bool = False
    failure: str = ""

    @property
    def held(self) -> bool:
        """Return whether the promise holds."""
        if self.ours is None:
            return False
        return self.ours >= self.limit if self.is_minimum else self.ours <= self.limit

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the row as text, in the order of the table's columns."""
        if self.failure:
            return self.what, "", "", "", "", f"failed: {self.failure}"
        promise = f"at {'least' if self.is_minimum else 'most'} {self._format(self.limit)}"
        theirs = self._format(self.theirs_value)
        return self.what, self._format(self.ours), self.theirs, theirs, promise, "yes" if self.held else "NO"

    def _format(self, value: float | None) -> str:
        return "" if value is None else f"{value:,.3f}".rstrip("0").rstrip(".") + f" {self.unit}"


def attempt(what: str, work: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """Yield the rows of `work`, each as soon as it is measured. If `work` raises an error, also yield a row named `what` with
    the reason.

    The helpers of the tests raise pytest's own exceptions if a part of the system is missing.
    """
    import pytest  # not at the top: the GPU benchmark also runs on computers without the test tools

    try:
        yield from work()
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:  # noqa: BLE001  whatever it is, it is the row's reason
        yield Row(what=what, ours=None, failure=_format_reason(error))


def seconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def medians(*works: Callable[[], float], rounds: int) -> list[float]:
    """Return the median of the values that each callable returns. Each round calls all of them once, in turn."""
    results: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for values, work in zip(results, works, strict=True):
            values.append(work())
    return [statistics.median(values) for values in results]


def table(rows: list[Row]) -> str:
    """Return the rows as text."""
    head = ("what", "ours", "compared with", "theirs", "promise", "held")
    body = [row.cells for row in rows]
    widths = [max(len(line[index]) for line in (head, *body)) for index in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in (head, *body)
    )


def _format_reason(error: BaseException) -> str:
    """Return one line: the last line that a command wrote to standard error, otherwise the text of the error."""
    output = error.stderr if isinstance(error, subprocess.CalledProcessError) else None
    text = output.decode(errors="replace") if isinstance(output, bytes) else output or ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = f"{error}: {lines[-1]}" if lines else str(error) or type(error).__name__
    return " ".join(words.split())[:MAX_REASON]
