"""Solve the hand-over of 8.7 by arithmetic alone: neighbouring ranks hold copies of a head, and they send in turn."""

from __future__ import annotations


def heads_of(rank: int, ranks: int, heads: int) -> list[int]:
    """Return the heads in the rank's part of the line from 0 to `heads`."""
    copies = max(1, ranks // heads)
    each = max(1, heads // ranks)
    return [rank // copies * each + place for place in range(each)]


def pieces(heads: int, senders: int, receivers: int) -> list[tuple[int, int, int, int]]:
    """Return the plan, head by head."""
    plan = []
    for head in range(heads):
        holders = [(rank, heads_of(rank, senders, heads).index(head)) for rank in range(senders)
                   if head in heads_of(rank, senders, heads)]  # fmt: skip
        needs = [(rank, heads_of(rank, receivers, heads).index(head)) for rank in range(receivers)
                 if head in heads_of(rank, receivers, heads)]  # fmt: skip
        for number, need in enumerate(needs):
            plan.append((*holders[number % len(holders)], *need))
    return plan
