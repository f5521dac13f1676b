"""Your part of 8.7: send tokens to their experts on other ranks, compute them there, and send the results back.

You will learn    dispatch and combine, the two all-to-alls of every mixture of experts, with no row sent twice to a rank
You will produce  a layer of experts over several ranks that equals the layer on one
Try it            gpucourse try 8.7
Your part         the body of `forward`; keep its name and parameters
Reading           modules/08-inference-engines/lesson-8-ranks.md
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

Compute = Callable[[int, torch.Tensor], torch.Tensor]


def forward(
    x: torch.Tensor,
    chosen: torch.Tensor,
    gates: torch.Tensor,
    experts: int,
    compute: Compute,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """Return the output of a layer of experts for this rank's tokens, with the shape and type of `x`.

    `x` (tokens, width) are this rank's tokens; each rank has its own number of them, which may be 0. `chosen` (tokens, k) has
    the numbers of each token's experts, and `gates` (tokens, k) their weights. A token's output is the sum over its experts of
    weight times output.

    Rank r of n has the experts from r * experts / n up to, but not including, (r + 1) * experts / n. The number `experts` is a
    multiple of n. `compute(expert, rows)` returns the output of an expert of this rank for rows (any number, width).

    All of `group` call this at the same time. A rank sends a row of `x` only to ranks that have one of the token's experts:
    once to each of them, even if that rank has several of these experts, and gets one row back for it. What else it sends is
    small: to each rank at most the k numbers and the k gates of each token, with up to 64 bits each, and sizes. Rows and gates
    are float64, and nothing may be rounded. Other ranks do not know how many rows they will receive, so tell them first: two
    ranks must expect the same sizes.
    """
    raise NotImplementedError("forward: what must a rank know about a row that two of its experts compute?")
