"""Solve the hand-over of 8.7: of the holders of each head, the one with the least work so far sends it."""

from __future__ import annotations


def heads_of(rank: int, ranks: int, heads: int) -> list[int]:
    """Return neighbouring heads, or, with more ranks than heads, the one head that neighbouring ranks share."""
    if ranks > heads:
        return [rank * heads // ranks]
    return list(range(rank * heads // ranks, (rank + 1) * heads // ranks))


def pieces(heads: int, senders: int, receivers: int) -> list[tuple[int, int, int, int]]:
    """Return the plan, receiver by receiver."""
    work = [0] * senders
    plan = []
    for receiver in range(receivers):
        for to_slot, head in enumerate(heads_of(receiver, receivers, heads)):
            holders = [sender for sender in range(senders) if head in heads_of(sender, senders, heads)]
            sender = min(holders, key=lambda holder: (work[holder], holder))
            work[sender] += 1
            plan.append((sender, heads_of(sender, senders, heads).index(head), receiver, to_slot))
    return plan
