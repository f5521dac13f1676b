"""Your part of 0.1: the attention of the tiny transformer.

You will learn    what attention computes, and what decides which characters it may look at
You will produce  an `attend` with which a third model is trained: the row `yours`
Try it            gpucourse try 0.1
Your part         the body of `attend`; keep its name and its parameters
Reading           modules/00-local-foundations/lesson.md, "What is in a block"
"""

from __future__ import annotations

import torch


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, heads: int, lines: torch.Tensor) -> torch.Tensor:
    """Return, for each character, the weighted mean of the values that it may look at: shape (batch, length, width).

    `query`, `key` and `value` have the shape (batch, length, width). Each of the `heads` heads attends separately, with
    width / heads consecutive numbers of each character. The results of all heads are side by side, in the order of the heads.

    `lines`, of shape (batch, length), are whole numbers: the line to which each character belongs. Every line is a separate
    story with its own rolls of the dice. A character may look at everything that is already known and helps to guess the next
    character, but not at other lines. Compute with basic operations: matrix products, masks, softmax.
    """
    raise NotImplementedError("attend: which characters can help to guess the next one, and which are not known yet?")
