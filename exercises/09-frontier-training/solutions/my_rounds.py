"""Solve both all-reduces of 9.1.

Halving takes its partners by the bits of a rank, the lowest first. The hierarchical all-reduce has rings inside each node, then
rings between nodes, then rings inside each node again.
"""

from __future__ import annotations

from rounds import Message


def _cut(first: int, last: int, parts: int) -> list[int]:
    return [first + (last - first) * part // parts for part in range(parts + 1)]


def halving_doubling(ranks: int, numbers: int) -> list[list[Message]]:
    """Return the rounds: the interval that a rank works on halves in each, and doubles on the way back."""
    if ranks < 1 or ranks & (ranks - 1):
        raise ValueError(f"{ranks} ranks: halving needs a power of two")
    edges = _cut(0, numbers, ranks)
    halving, doubling, held = [], [], [(0, ranks)] * ranks
    for bit in range(ranks.bit_length() - 1):
        there, back = [], []
        for rank, (first, last) in enumerate(held):
            kept, passed = (first, (first + last) // 2), ((first + last) // 2, last)
            if rank >> bit & 1:
                kept, passed = passed, kept
            there.append(Message(rank, rank ^ 1 << bit, edges[passed[0]], edges[passed[1]], True))
            back.append(Message(rank, rank ^ 1 << bit, edges[kept[0]], edges[kept[1]], False))
            held[rank] = kept
        halving.append(there)
        doubling.append(back)
    return halving + doubling[::-1]


def hierarchical(nodes: int, per_node: int, numbers: int) -> list[list[Message]]:
    """Return the rounds of the three phases."""
    chunks = _cut(0, numbers, per_node)
    places = [(node, gpu) for node in range(nodes) for gpu in range(per_node)]

    def pass_on(step: int, is_sum: bool) -> list[Message]:
        messages = []
        for node, gpu in places:
            chunk = (gpu - step) % per_node
            target = node * per_node + (gpu + 1) % per_node
            messages.append(Message(node * per_node + gpu, target, chunks[chunk], chunks[chunk + 1], is_sum))
        return messages

    def cross(step: int) -> list[Message]:
        messages = []
        for node, gpu in places:
            owned = (gpu + 1) % per_node
            parts = _cut(chunks[owned], chunks[owned + 1], nodes)
            part = (node - step) % nodes
            target = (node + 1) % nodes * per_node + gpu
            messages.append(Message(node * per_node + gpu, target, parts[part], parts[part + 1], step < nodes - 1))
        return messages

    summing = [pass_on(step, True) for step in range(per_node - 1)]
    crossing = [cross(step) for step in range(2 * (nodes - 1))]
    gathering = [pass_on(step - 1, False) for step in range(per_node - 1)]
    return summing + crossing + gathering
