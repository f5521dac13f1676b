"""Prefill, then one token at a time: each call computes only what is not in the cache yet."""

from __future__ import annotations

from collections.abc import Callable

Model = Callable[[list[int], list[int]], list[list[float]]]


def generate(model: Model, prompt: list[int], count: int) -> list[int]:
    """Return the `count` tokens that the model writes after `prompt`."""
    cache: list[int] = []
    scores = model(prompt, cache)[-1]
    written: list[int] = []
    while True:
        written.append(scores.index(max(scores)))
        if len(written) == count:
            return written
        scores = model(written[-1:], cache)[-1]
