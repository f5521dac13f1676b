"""Solve the costs of 8.1: count the numbers of one layer first, then all layers, tokens and requests."""

from __future__ import annotations

from typing import Any


def cache_bytes(card: Any, tokens: int, number_bytes: float) -> int:
    """Return the bytes of the cache: numbers of a token in a layer, times the tokens that each layer keeps."""
    numbers = card.latent + card.rope_dim if card.latent else 2 * card.kv_heads * card.head_dim
    kept = (card.layers - card.windowed_layers) * tokens + card.windowed_layers * min(tokens, card.window)
    return int(numbers * kept * number_bytes)


def attention_weights(card: Any) -> int:
    """Return the numbers of a layer's matrices for queries and output, keys and values."""
    return 2 * card.width * card.head_dim * (card.heads + card.kv_heads)


def count_keys(card: Any, past: int, new: int) -> int:
    """Return the keys that the new tokens of a request look at, added up over all layers."""
    with_window = min(past, card.window - 1) + new
    return (card.layers - card.windowed_layers) * (past + new) + card.windowed_layers * with_window


def operations(card: Any, rows: list[tuple[int, int]]) -> int:
    """Return the operations of a step: products with weights, scores over the vocabulary, and attention."""
    tokens = sum(new for _, new in rows)
    weights = attention_weights(card) + card.width * (3 * card.hidden * (card.per_token or 1) + card.experts)
    products = 2 * card.layers * weights * tokens + 2 * card.width * card.vocabulary * len(rows)
    scores = sum(new * count_keys(card, past, new) for past, new in rows)
    return products + 4 * card.heads * card.head_dim * scores


def bytes_read(card: Any, rows: list[tuple[int, int]], number_bytes: float) -> float:
    """Return the bytes that a step reads: the weights once, and the keys and values of each request."""
    tokens = sum(new for _, new in rows)
    touched = experts_touched(card.experts, card.per_token, tokens) if card.experts else 1
    layer = attention_weights(card) + card.width * (3 * card.hidden * touched + card.experts)
    weights = card.layers * layer + card.width * card.vocabulary
    keys = sum(count_keys(card, past, new) for past, new in rows)
    return (weights + 2 * card.kv_heads * card.head_dim * keys) * number_bytes


def experts_touched(experts: int, per_token: int, tokens: int) -> float:
    """Return the expected number of experts: a token misses each with probability 1 - k / E."""
    return experts * (1 - (1 - per_token / experts) ** tokens)
