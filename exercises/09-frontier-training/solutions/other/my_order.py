"""Solve the order of 9.4 by counting: if more than `stage` weight gradients wait, compute one; else a forward if possible."""

from __future__ import annotations


def order_of_stage(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Return the order of one stage."""
    done = {"forward": 0, "inputs": 0, "weights": 0}
    order = []
    while done["weights"] < micro_batches:
        if done["inputs"] - done["weights"] > stage or done["inputs"] == micro_batches:
            kind = "weights"
        elif done["forward"] < micro_batches and done["forward"] - done["inputs"] < stages - stage:
            kind = "forward"
        else:
            kind = "inputs"
        order.append((kind, done[kind]))
        done[kind] += 1
    return order
