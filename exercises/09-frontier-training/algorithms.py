"""All-reduces as rounds of messages: a ring, recursive doubling, and a tree, whole or in pieces."""

from __future__ import annotations

from collections.abc import Callable

from rounds import Message, Rounds

TREE_PIECES = 16


def list_edges(numbers: int, parts: int) -> list[int]:
    """Return the index at which each part of a vector begins, and the end. The lengths of two parts differ by at most one."""
    return [numbers * part // parts for part in range(parts + 1)]


def ring(ranks: int, numbers: int) -> Rounds:
    """Return the rounds of a ring: in each, every rank sends one of `ranks` chunks to the next rank (3.1)."""
    edges = list_edges(numbers, ranks)
    rounds = []
    for step in range(2 * (ranks - 1)):
        chunks = [(rank - step) % ranks for rank in range(ranks)]
        is_sum = step < ranks - 1
        rounds.append(
            [Message(rank, (rank + 1) % ranks, edges[chunk], edges[chunk + 1], is_sum) for rank, chunk in enumerate(chunks)]
        )
    return rounds


def doubling(ranks: int, numbers: int) -> Rounds:
    """Return the rounds of recursive doubling, for a power of two: partners 1, 2, 4 ... ranks apart exchange everything."""
    bits = [1 << level for level in range(ranks.bit_length() - 1)]
    return [[Message(rank, rank ^ bit, 0, numbers, True) for rank in range(ranks)] for bit in bits]


def tree(ranks: int, numbers: int, pieces: int = 1) -> Rounds:
    """Return the rounds of a binomial tree: sums go to rank 0 and come back. Each piece is a round behind the previous one."""
    levels = (ranks - 1).bit_length()
    edges = list_edges(numbers, pieces)
    rounds: Rounds = [[] for _ in range(2 * levels + pieces - 1)]
    for piece in range(pieces):
        first, last = edges[piece], edges[piece + 1]
        for level in range(levels):
            step = 1 << level
            for rank in range(0, ranks - step, 2 * step):
                rounds[piece + level].append(Message(rank + step, rank, first, last, True))
                rounds[piece + 2 * levels - 1 - level].append(Message(rank, rank + step, first, last, False))
    return rounds


ALGORITHMS: dict[str, Callable[[int, int], Rounds]] = {
    "ring": ring,
    "doubling": doubling,
    "tree": tree,
    f"tree in {TREE_PIECES} pieces": lambda ranks, numbers: tree(ranks, numbers, TREE_PIECES),
}
"""The course's all-reduces by name."""
