"""Solve the order of issue of 9.6 with one loop for both directions: gather up to `ahead` layers before their turn."""

from __future__ import annotations


def order(layers: int, ahead_forward: int, ahead_backward: int, frees: bool) -> list[tuple[str, int]]:
    """Return the issues of one step."""
    forward, backward = list(range(layers)), list(reversed(range(layers)))
    issues = []
    for kind, sequence, ahead in (("forward", forward, ahead_forward), ("backward", backward, ahead_backward)):
        gathered = layers if kind == "backward" and not frees else 0
        for place, layer in enumerate(sequence):
            while gathered < min(place + ahead + 1, layers):
                issues.append(("gather", sequence[gathered]))
                gathered += 1
            issues.append((kind, layer))
            if frees or kind == "backward":
                issues.append(("free", layer))
            if kind == "backward":
                issues.append(("reduce", layer))
    return issues
