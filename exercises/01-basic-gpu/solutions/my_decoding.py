"""A solution of 1.2: prefill, then one token at a time. Each call computes only tokens that are not in the cache yet."""

from __future__ import annotations

from collections.abc import Callable

Model = Callable[[list[int], list[int]], list[list[float]]]


def generate(model: Model, prompt: list[int], count: int) -> list[int]:
    """Return the `count` tokens that the model writes after `prompt`."""
    cache: list[int] = []
    scores = model(prompt, cache)[-1]
    tokens: list[int] = []
    while True:
        tokens.append(scores.index(max(scores)))
        if len(tokens) == count:
            return tokens
        scores = model(tokens[-1:], cache)[-1]
