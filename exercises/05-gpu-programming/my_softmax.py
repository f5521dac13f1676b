"""Your first part of 5.10: a softmax over keys that come in blocks, and are gone afterwards.

You will learn    what has to be kept of the scores that have passed, and why that is so little
You will produce  attention of some queries that never sees two blocks of keys at the same time
Try it            gpucourse try 5.10 (no Triton needed for this part)
Your part         the body of `attend`; keep its name and its parameters
Reading           modules/05-gpu-programming/lesson-4-fusion.md, "A softmax that forgets"
"""

from __future__ import annotations

from collections.abc import Iterable

import torch


def attend(queries: torch.Tensor, blocks: Iterable[tuple[torch.Tensor, torch.Tensor]], scale: float) -> torch.Tensor:
    """softmax(queries · keysᵀ · scale) · values, of shape (m, e), over the keys and values of all blocks together.

    `queries` has the shape (m, d). `blocks` gives pairs (keys, values) of the shapes (b, d) and (b, e), one after the other and
    once only; b differs from block to block. At most one block may be held at a time: let go of it before you take the next.
    Scores may be large, 200 and more: exp(200) is no number in float32, but exp(200 - 200) is.
    """
    raise NotImplementedError("attend: three things are kept for each query. What becomes of them when a larger score comes?")
