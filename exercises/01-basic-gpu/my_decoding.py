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
    """Return the `count` tokens that the model writes after `prompt`. Always choose the likeliest token.

    `model(tokens, cache)` computes several consecutive tokens in one call. It appends the key and value of each token to
    `cache`, a list that you create empty, and looks back at everything in the cache. So tokens that are already in the cache
    need not be computed again. For each of the given tokens, it returns a list with a score for every token that could come
    next. `count` is at least 1.
    """
    raise NotImplementedError("generate: which tokens are not in the cache yet?")
