"""Another solution of 6.3: it uses strides, which are the numbers of ranks from one coordinate to the next."""

from __future__ import annotations

import math

ORDER = ("dp", "pp", "tp")


def strides(sizes: dict[str, int], order: tuple[str, ...]) -> dict[str, int]:
    """Return the distance in ranks between two neighbouring coordinates of each dimension."""
    return {name: math.prod(sizes[inner] for inner in order[at + 1 :]) for at, name in enumerate(order)}


def coordinates(rank: int, sizes: dict[str, int], order: tuple[str, ...]) -> dict[str, int]:
    """Return each coordinate: the rank divided by its stride, modulo its size."""
    return {name: rank // stride % sizes[name] for name, stride in strides(sizes, order).items()}


def groups(dimension: str, sizes: dict[str, int], order: tuple[str, ...]) -> list[list[int]]:
    """Return the groups: begin at each rank whose coordinate is 0, and go on by strides."""
    stride, size = strides(sizes, order)[dimension], sizes[dimension]
    firsts = [rank for rank in range(math.prod(sizes.values())) if rank // stride % size == 0]
    return [[first + stride * at for at in range(size)] for first in firsts]


def cross_node_bytes(sizes: dict[str, int], order: tuple[str, ...], ranks_per_node: int, message_bytes: dict) -> float:
    """Return the sum of the bytes that each rank sends to a next rank, or gets back from a next stage, on another node."""
    total = 0.0
    for name, stride in strides(sizes, order).items():
        size = sizes[name]
        for rank in range(math.prod(sizes.values())):
            at = rank // stride % size
            following = rank + stride if at < size - 1 else rank - stride * (size - 1)
            if rank // ranks_per_node == following // ranks_per_node:
                continue
            if name == "pp":
                total += 2 * message_bytes["pp"] if at < size - 1 else 0
            else:
                total += 2 * (size - 1) * message_bytes[name][coordinates(rank, sizes, order)["pp"]] / size
    return total
