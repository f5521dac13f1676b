"""A solution of 3.6: it runs a forward for each later stage, then one forward and one backward in turn, then the remaining
backwards."""

from __future__ import annotations


def order_of_stage(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Return the order of one stage."""
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", number) for number in range(warm_up)]
    for number in range(micro_batches - warm_up):
        order.append(("forward", warm_up + number))
        order.append(("backward", number))
    order.extend(("backward", number) for number in range(micro_batches - warm_up, micro_batches))
    return order
