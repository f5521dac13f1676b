"""Your first part of 9.3: attention over a sequence that no rank holds, with keys that travel round a ring.

You will learn    how two softmaxes become one, which rank sees which keys when, and how gradients return to their owner
You will produce  a share with even work, a merge of two results, and a ring forward and backward
Try it            gpucourse try 9.3
Your part         the bodies of all four functions; keep their names and parameters
Reading           modules/09-frontier-training/lesson-4-context.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

SendOn = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]
"""Send tensors to the next rank, rank + 1 or 0, and return those of the previous rank. All ranks call it equally often."""


def share(length: int, ranks: int, rank: int) -> torch.Tensor:
    """Return the positions of the tokens that `rank` holds, in ascending order, as int64 [length / ranks].

    The sequence is cut into 2 * ranks equal pieces, and each rank holds two of them. Under a causal mask, the query at position
    p sees p + 1 keys; all ranks must have exactly the same number of pairs of query and key. `length` is a multiple of 2 *
    ranks.
    """
    raise NotImplementedError("share: which pairs of pieces all have the same work together?")


def merge(
    out: torch.Tensor, lse: torch.Tensor, part: torch.Tensor, part_lse: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the attention over two sets of keys, and its logsumexp, from those of each set.

    `out` and `part` [heads, queries, d] are results of the same queries over different keys. `lse` and `part_lse`
    [heads, queries, 1] are the logsumexp of their scores: log of the sum of exp(score). It is -inf for a query that has seen no
    key yet, whose result is 0. Scores can be 300, so no exp of a score or of an lse alone fits into float32.
    """
    raise NotImplementedError("merge: which share of the whole softmax does each set of keys have?")


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, positions: list[torch.Tensor], rank: int, causal: bool,
    send_on: SendOn, block: Callable[..., tuple[torch.Tensor, torch.Tensor]],
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the attention of this rank's queries over all keys of all ranks, and its logsumexp.

    q [heads, tokens, d], k and v [kv_heads, tokens, d] are of this rank's tokens, and positions[r] are the positions of rank
    r's tokens. block(q, k, v, q_positions, k_positions) returns result and logsumexp over one rank's keys, and masks by
    positions. Each rank sends k and v on, 2 * (ranks - 1) tensors in all, and keeps only what it needs for the next block. If
    `causal`, a block whose keys all come after this rank's queries is not computed.
    """
    raise NotImplementedError("forward: whose keys do you hold in step s?")


def backward(
    gradient: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    positions: list[torch.Tensor], rank: int, causal: bool, send_on: SendOn, gradients: Callable[..., tuple[torch.Tensor, ...]],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the gradients of this rank's q, k and v, from the `gradient` of its output.

    `out` and `lse` are what forward returned. gradients(gradient, (q, k, v, out, lse), q_positions, k_positions) returns what
    one rank's keys contribute to the gradients of q, k and v. Each rank sends 4 * (ranks - 1) + 2 tensors in all.
    """
    raise NotImplementedError("backward: who adds up the gradients of keys that travel?")
