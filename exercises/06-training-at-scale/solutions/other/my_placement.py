"""Another solution of 6.1: decide on each block from last to first, and keep the cheapest choice for each number of bytes."""

from __future__ import annotations

import functools
import math


def place(kept: list[int], left: list[int], operations: list[int], limit: int) -> list[int] | None:
    """Return the placement. Go backward: a block limits what all blocks before it may keep together."""

    @functools.cache
    def solve(number: int, room: int) -> tuple[float, tuple[int, ...]]:
        """Return the cheapest choice for the first blocks, which together may keep that many bytes."""
        if room < 0:
            return math.inf, ()
        if number < 0:
            return 0, ()
        whole = limit - kept[number]
        keeps = solve(number - 1, min(whole, room - kept[number]))
        drops, chosen = solve(number - 1, min(whole, room - left[number]))
        return min(keeps, (drops + operations[number], (*chosen, number)), key=lambda item: item[0])

    cost, chosen = solve(len(kept) - 1, limit)
    return None if cost == math.inf else list(chosen)
