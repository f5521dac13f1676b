"""Your first part of 5.10: a softmax over keys that come in blocks, each of which you see only once.

You will learn    what you have to keep of the scores so far, and why that is so little
You will produce  attention of some queries that never holds two blocks of keys at the same time
Try it            gpucourse try 5.10 (no Triton needed for this part)
Your part         the body of `attend`; keep its name and its parameters
Reading           modules/05-gpu-programming/lesson-12-attention.md, "A softmax that forgets"
"""

from __future__ import annotations

from collections.abc import Iterable

import torch


def attend(queries: torch.Tensor, blocks: Iterable[tuple[torch.Tensor, torch.Tensor]], scale: float) -> torch.Tensor:
    """Return softmax(queries · keysᵀ · scale) · values, of shape (m, e), over the keys and values of all blocks together.

    `queries` has the shape (m, d). `blocks` yields pairs (keys, values) of the shapes (b, d) and (b, e), one after the other
    and only once. b differs from block to block. Hold at most one block at a time: drop it before you take the next.
    Scores may be 200 or more: exp(200) overflows in float32, but exp(200 - 200) does not.
    """
    raise NotImplementedError("attend: keep three things for each query. How do they change when a larger score comes?")
