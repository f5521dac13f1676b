"""Another solution of 3.6: at each moment, it runs the next forward if the stage may hold another micro-batch, otherwise the
oldest backward."""

from __future__ import annotations


def order_of_stage(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Return the order of one stage."""
    room = stages - stage
    order: list[tuple[str, int]] = []
    begun_count, back = 0, 0
    while back < micro_batches:
        if begun_count < micro_batches and begun_count - back < room:
            order.append(("forward", begun_count))
            begun_count += 1
        else:
            order.append(("backward", back))
            back += 1
    return order
