"""Solve the order of issue of 9.6: the first gathers, then one more before each computation, until all are gathered."""

from __future__ import annotations


def order(layers, ahead_forward, ahead_backward, frees):
    """Return the issues of one step."""
    issues = [("gather", layer) for layer in range(min(ahead_forward, layers))]
    for layer in range(layers):
        if layer + ahead_forward < layers:
            issues.append(("gather", layer + ahead_forward))
        issues.append(("forward", layer))
        if frees:
            issues.append(("free", layer))
    if frees:
        issues += [("gather", layers - 1 - number) for number in range(min(ahead_backward, layers))]
    for layer in reversed(range(layers)):
        if frees and layer - ahead_backward >= 0:
            issues.append(("gather", layer - ahead_backward))
        issues += [("backward", layer), ("free", layer), ("reduce", layer)]
    return issues
