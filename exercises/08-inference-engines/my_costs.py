"""Your part of 8.1: what a step of an engine keeps, computes and reads, from the published shape of a model.

You will learn    what a token costs in bytes and in operations, and which of these costs the requests of a batch share
You will produce  four formulas; the run compares them with what it counts while models compute
Try it            gpucourse try 8.1
Your part         the bodies of the four functions; keep their names and parameters
Reading           modules/08-inference-engines/lesson-2-costs.md

`card` has the shape of a model. A number that the model does not have is 0.
  layers, width, vocabulary  blocks; numbers that represent a token between two blocks; tokens that exist
  heads, kv_heads, head_dim  query heads; key heads, each with a value head; numbers of a head. Query heads share key heads
  hidden                     inner width of a feed-forward block; a model with experts has it in each of its experts
  latent, rope_dim           multi-head latent attention keeps these two instead of keys and values: a vector from which the
                             keys and values of all heads are computed, and the numbers that carry the position
  window, windowed_layers    in that many of the layers, a token looks back at `window` tokens, itself included
  experts, per_token         experts in each layer, and how many of them compute a token
"""

from __future__ import annotations

from typing import Any


def cache_bytes(card: Any, tokens: int, number_bytes: float) -> int:
    """Return the bytes that the cache holds for a sequence of `tokens` tokens, with `number_bytes` bytes for each number.

    A layer with a window keeps at most `window` tokens: those that the newest token looks back at, itself included.
    """
    raise NotImplementedError("cache_bytes: what does one layer keep of one token for later tokens?")


def operations(card: Any, rows: list[tuple[int, int]]) -> int:
    """Return the operations of one step: two for each multiply-add of a matrix product.

    `rows` has (past, new) for each request: `past` tokens are in its cache, `new` tokens are computed now. These products
    count: queries, keys and values from the input; queries times keys; weights times values; the output; gate, up and down of
    the feed-forward block, with experts also the scores of all experts for each token; and at the end the scores over the
    vocabulary of the last token of each request. All new tokens of a request are multiplied by all keys that any of
    them looks at, as a plain kernel does. `card.latent` is 0.
    """
    raise NotImplementedError("operations: with how many weights, and with how many keys, is a new token multiplied?")


def bytes_read(card: Any, rows: list[tuple[int, int]], number_bytes: float) -> float:
    """Return the bytes of weights and cache that the products of such a step read, with `number_bytes` bytes for each number.

    Each weight and each key and value is read once in a step. Tokens choose their experts independently and with equal
    probability: the result is the expected number of bytes. `card.latent` is 0.
    """
    raise NotImplementedError(
        "bytes_read: which bytes do the requests of a step share, and which does each request need for itself?"
    )


def experts_touched(experts: int, per_token: int, tokens: int) -> float:
    """Return the mean number of experts, of `experts`, that compute at least one of `tokens` tokens.

    Each token has `per_token` different experts, which are drawn independently of other tokens.
    """
    raise NotImplementedError("experts_touched: how probable is it that one expert gets none of the tokens?")
