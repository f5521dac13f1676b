"""The same by a rule for each moment: run forward while there is room for one more micro-batch, else the oldest backward."""

from __future__ import annotations


def order_of_stage(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Return the order of one stage."""
    room = stages - stage
    order: list[tuple[str, int]] = []
    gone, back = 0, 0
    while back < micro_batches:
        if gone < micro_batches and gone - back < room:
            order.append(("forward", gone))
            gone += 1
        else:
            order.append(("backward", back))
            back += 1
    return order
