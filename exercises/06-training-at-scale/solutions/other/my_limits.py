"""Another solution of 6.3: it solves each inequality for the number of ranks, once for each kind of link."""

from __future__ import annotations

import math


def largest(way: str, cluster: dict) -> int:
    """Return the largest number of ranks, a power of two, with which computing does not wait for messages."""
    divided = cluster["heads" if way == "tensor" else "sequences"]
    possible = math.gcd(divided, 4096)
    near = power_below(limit(way, cluster, cluster["inside_bytes_per_s"]))
    far = power_below(limit(way, cluster, cluster["between_bytes_per_s"]))
    inside = power_below(cluster["ranks_per_node"])
    if min(near, possible) > inside and far > inside:
        return min(far, possible)
    return min(near, inside, possible)


def limit(way: str, cluster: dict, speed: float) -> float:
    """Return the largest number of ranks, not rounded, over links of that speed. (n - 1) messages fit into the layer's work."""
    tokens = cluster["sequences"] * cluster["length"]
    per_flop = speed / cluster["flop_per_s"]
    weight, gradient = cluster["weight_bytes"], cluster["gradient_bytes"]
    if way == "data":
        return 1 + 2 * tokens * per_flop / gradient
    if way == "sharded":
        return 1 + min(2 * tokens * per_flop / weight, 4 * tokens * per_flop / (weight + gradient))
    return 1 + 6 * cluster["width"] * per_flop / weight


def power_below(number: float) -> int:
    """Return the largest power of two that is not above a number."""
    return 2 ** math.floor(math.log2(number))
