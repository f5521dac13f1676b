"""Solve the order of 9.4 by ZB-H1: 1F1B, but stage s computes its weight gradients s micro-batches later."""

from __future__ import annotations


def order_of_stage(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Return the order of one stage."""
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", number) for number in range(warm_up)]
    delay, waiting = stage, []
    for number in range(micro_batches):
        if warm_up + number < micro_batches:
            order.append(("forward", warm_up + number))
        order.append(("inputs", number))
        waiting.append(number)
        if len(waiting) > delay:
            order.append(("weights", waiting.pop(0)))
    order.extend(("weights", number) for number in waiting)
    return order
