"""Your second part of 9.3: Ulysses, which exchanges tokens for heads before attention, and back after it.

You will learn    how an all-to-all changes what is cut, and what limits the number of ranks
You will produce  attention over a long sequence in four exchanges
Try it            gpucourse try 9.3
Your part         the body of `attention`; keep its name and parameters
Reading           modules/09-frontier-training/lesson-4-context.md, "Ulysses"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, positions: list[torch.Tensor],
    all_to_all: Callable[[Sequence[torch.Tensor]], list[torch.Tensor]],
    block: Callable[..., tuple[torch.Tensor, torch.Tensor]],
) -> torch.Tensor:  # fmt: skip
    """Return the attention of this rank's queries over all keys of all ranks, [heads, tokens, d].

    q [heads, tokens, d], k and v [kv_heads, tokens, d] are of this rank's tokens, and positions[r] are the positions of rank
    r's tokens, the same number on each rank. all_to_all(parts) sends parts[r] to rank r and returns what each rank sent, in the
    order of the ranks; all parts have the same shape, and autograd follows them. Rank r computes the r-th of equal groups of
    heads. block(q, k, v, q_positions, k_positions) returns result and logsumexp, and masks by positions. `heads` and `kv_heads`
    are multiples of the number of ranks. Call all_to_all four times.
    """
    raise NotImplementedError("attention: which dimension do you cut before an exchange, and which do you join after it?")
