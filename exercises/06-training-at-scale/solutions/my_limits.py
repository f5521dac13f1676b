"""A solution of 6.3: it solves one inequality for each way to divide the work."""

from __future__ import annotations


def largest(way: str, cluster: dict) -> int:
    """Return the largest number of ranks, a power of two, with which computing does not wait for messages."""
    ranks = 1
    while ranks < 4096 and hides(way, 2 * ranks, cluster):
        ranks *= 2
    return ranks


def hides(way: str, ranks: int, cluster: dict) -> bool:
    """Return whether the strictest message of a layer takes no longer than the computing that it hides behind."""
    divided = cluster["heads"] if way == "tensor" else cluster["sequences"]
    if divided % ranks:
        return False
    tokens, weights = cluster["sequences"] * cluster["length"], 12 * cluster["width"] ** 2
    forward_s = 2 * weights * tokens / ranks / cluster["flop_per_s"]
    speed = cluster["inside_bytes_per_s"] if ranks <= cluster["ranks_per_node"] else cluster["between_bytes_per_s"]
    once_s = (ranks - 1) / ranks / speed
    if way == "data":
        return 2 * weights * cluster["gradient_bytes"] * once_s <= 2 * forward_s
    if way == "sharded":
        gather_s, scatter_s = weights * cluster["weight_bytes"] * once_s, weights * cluster["gradient_bytes"] * once_s
        return gather_s <= forward_s and gather_s + scatter_s <= 2 * forward_s
    return 2 * 2 * tokens * cluster["width"] * cluster["weight_bytes"] * once_s <= forward_s
