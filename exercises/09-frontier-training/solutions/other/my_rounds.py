"""Solve both all-reduces of 9.1: recursion on intervals of numbers, and direct exchanges inside a node."""

from __future__ import annotations

from rounds import Message


def _list_steps(ranks: int, first: int, last: int) -> list[list[tuple[int, int, tuple[int, int], tuple[int, int]]]]:
    """Return (rank, partner, interval that it passes, interval that it keeps) for each level of halving."""
    steps, intervals, distance = [], dict.fromkeys(range(ranks), (first, last)), 1
    while distance < ranks:
        step = []
        for rank in range(ranks):
            begin, end = intervals[rank]
            middle = (begin + end + 1) // 2
            lower, upper = (begin, middle), (middle, end)
            is_upper = rank // distance % 2 == 1
            partner = rank - distance if is_upper else rank + distance
            kept, passed = (upper, lower) if is_upper else (lower, upper)
            step.append((rank, partner, passed, kept))
            intervals[rank] = kept
        steps.append(step)
        distance *= 2
    return steps


def halving_doubling(ranks: int, numbers: int) -> list[list[Message]]:
    """Return the rounds: first those that send sums, then those that send finished numbers back."""
    if ranks not in (1 << level for level in range(30)):
        raise ValueError("the number of ranks must be a power of two")
    steps = _list_steps(ranks, 0, numbers)
    there = [[Message(rank, partner, *passed, True) for rank, partner, passed, _ in step] for step in steps]
    back = [[Message(rank, partner, *kept, False) for rank, partner, _, kept in step] for step in reversed(steps)]
    return there + back


def _exchange(nodes: int, per_node: int, numbers: int, first: int) -> list[list[Message]]:
    """Return rounds in which rank i of each node sends chunk j to rank j (first = 0), or its finished chunk to all."""
    edges = [numbers * part // per_node for part in range(per_node + 1)]
    rounds = []
    for shift in range(1, per_node):
        messages = []
        for rank in range(nodes * per_node):
            place = rank % per_node
            other = (place + shift) % per_node
            chunk = place if first else other
            messages.append(Message(rank, rank - place + other, edges[chunk], edges[chunk + 1], not first))
        rounds.append(messages)
    return rounds


def hierarchical(nodes: int, per_node: int, numbers: int) -> list[list[Message]]:
    """Return direct exchanges inside the nodes, and a ring between them for each chunk."""
    rounds = _exchange(nodes, per_node, numbers, 0)
    for step in range(2 * nodes - 2):
        messages = []
        for rank in range(nodes * per_node):
            node, place = divmod(rank, per_node)
            begin, end = numbers * place // per_node, numbers * (place + 1) // per_node
            part = (node - step) % nodes
            first, last = (begin + (end - begin) * piece // nodes for piece in (part, part + 1))
            messages.append(Message(rank, (rank + per_node) % (nodes * per_node), first, last, step + 1 < nodes))
        rounds.append(messages)
    return rounds + _exchange(nodes, per_node, numbers, 1)
