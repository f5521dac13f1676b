"""Your second part of 1.2: generate an answer token by token, with a cache.

You will learn    what prefill and decode compute, and what the cache saves
You will produce  a `generate` that computes each token once, as an engine does
Try it            gpucourse try 1.2
Your part         the body of `generate`; keep its name and its parameters
Reading           modules/01-basic-gpu/lesson-2-engine.md, "What an engine does"
"""

from __future__ import annotations

from collections.abc import Callable

Model = Callable[[list[int], list[int]], list[list[float]]]


def generate(model: Model, prompt: list[int], count: int) -> list[int]:
    """Return the `count` tokens that the model writes after `prompt`, always choosing the likeliest.

    `model(tokens, cache)` computes several consecutive tokens at the same time. For each of them it appends the key and value
    to `cache`, a list that you create empty, and it looks back at everything in the cache. It returns one list of scores for
    each of these tokens: a score for every token that could come next. So tokens that are already in the cache need not be
    computed again. `count` is at least 1.
    """
    raise NotImplementedError("generate: which tokens are not in the cache yet?")
