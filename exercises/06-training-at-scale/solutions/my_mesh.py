"""A solution of 6.3: it reads the number of a rank as digits, one for each dimension."""

from __future__ import annotations

import itertools
from math import prod

ORDER = ("pp", "dp", "tp")


def coordinates(rank: int, sizes: dict[str, int], order: tuple[str, ...]) -> dict[str, int]:
    """Return the coordinates, digit by digit, beginning with the dimension that varies fastest."""
    place = {}
    for name in reversed(order):
        rank, place[name] = divmod(rank, sizes[name])
    return place


def groups(dimension: str, sizes: dict[str, int], order: tuple[str, ...]) -> list[list[int]]:
    """Return the groups: all ranks whose other coordinates are equal."""
    by_rest: dict[tuple[int, ...], list[int]] = {}
    for rank in range(prod(sizes.values())):
        place = coordinates(rank, sizes, order)
        other_coordinates = tuple(place[name] for name in order if name != dimension)
        by_rest.setdefault(other_coordinates, []).append(rank)
    return list(by_rest.values())


def cross_node_bytes(sizes: dict[str, int], order: tuple[str, ...], ranks_per_node: int, message_bytes: dict) -> float:
    """Return the bytes of every message whose two ends are on different nodes."""
    total = 0.0
    for dimension in ("dp", "tp"):
        n = sizes[dimension]
        for group in groups(dimension, sizes, order):
            for rank, following in zip(group, group[1:] + group[:1], strict=True):
                stage = coordinates(rank, sizes, order)["pp"]
                if rank // ranks_per_node != following // ranks_per_node:
                    total += 2 * (n - 1) / n * message_bytes[dimension][stage]
    for group in groups("pp", sizes, order):
        for rank, following in itertools.pairwise(group):
            if rank // ranks_per_node != following // ranks_per_node:
                total += 2 * message_bytes["pp"]
    return total
