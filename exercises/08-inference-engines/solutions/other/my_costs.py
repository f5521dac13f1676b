"""Solve the costs of 8.1 with lists of layers and of matrices, added up one by one."""

from __future__ import annotations

from typing import Any


def windows(card: Any) -> list[int]:
    """Return how many tokens each layer looks back; 10**12 without a window."""
    return [card.window] * card.windowed_layers + [10**12] * (card.layers - card.windowed_layers)


def matrices(card: Any) -> list[tuple[str, int, int]]:
    """Return the matrices of a layer: the kind, the numbers of one of them, and how many a token needs."""
    queries, keys = card.heads * card.head_dim, card.kv_heads * card.head_dim
    attention = [("shared", card.width * size, 1) for size in (queries, keys, keys, queries)]
    if not card.experts:
        return attention + [("shared", card.width * card.hidden, 1)] * 3
    return [*attention, ("shared", card.width * card.experts, 1)] + [("expert", card.width * card.hidden, card.per_token)] * 3


def cache_bytes(card: Any, tokens: int, number_bytes: float) -> int:
    """Return the bytes of the cache, layer by layer."""
    total = 0
    for window in windows(card):
        numbers = (
            card.latent + card.rope_dim if card.latent > 0 else card.kv_heads * card.head_dim + card.kv_heads * card.head_dim
        )
        total += min(window, tokens) * numbers
    return round(total * number_bytes)


def operations(card: Any, rows: list[tuple[int, int]]) -> int:
    """Return the operations of all layers and rows, and of the scores over the vocabulary."""
    total = 0
    for past, new in rows:
        total += card.width * card.vocabulary
        for window in windows(card):
            total += new * sum(size * count for _, size, count in matrices(card))
            total += 2 * new * card.heads * card.head_dim * (new + min(past, window - 1))
    return 2 * total


def bytes_read(card: Any, rows: list[tuple[int, int]], number_bytes: float) -> float:
    """Return the bytes of all matrices that are needed, and of all keys and values."""
    touched = experts_touched(card.experts, card.per_token, sum(new for _, new in rows)) if card.experts else 0.0
    numbers: float = card.width * card.vocabulary
    for window in windows(card):
        numbers += sum(size * (touched if kind == "expert" else 1) for kind, size, _ in matrices(card))
        numbers += sum(2 * card.kv_heads * card.head_dim * (new + min(past, window - 1)) for past, new in rows)
    return numbers * number_bytes


def experts_touched(experts: int, per_token: int, tokens: int) -> float:
    """Return the expected number of experts, token by token: a new token adds those that no earlier token has."""
    touched = 0.0
    for _ in range(tokens):
        touched += per_token * (1 - touched / experts)
    return touched
