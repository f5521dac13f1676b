"""The whole tiny transformer of exercise 0.1: a large language model is made of the same parts, with larger numbers.

You will learn    what a block is made of, and what attention needs to know
You will produce  nothing directly: tiny_transformer.py trains it
Run it            python tiny_transformer.py
Your part         write the attention in my_attention.py; take out the mask, or `place`, or the `x +` of a block
Reading           modules/00-local-foundations/lesson.md, "What is in a block"
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int, torch.Tensor], torch.Tensor]


class TinyTransformer(nn.Module):
    """A model that turns each character and its position into `width` numbers, passes them through the blocks, and returns
    scores.

    Its attention is PyTorch's own, or `attend`: a function of queries, keys, values, the number of heads, and the number of
    each character's line. `line_end` is the character that ends a line, if the text has any.
    """

    def __init__(
        self,
        vocabulary: int,
        context: int,
        layers: int,
        width: int,
        heads: int,
        attend: Attend | None = None,
        line_end: int | None = None,
    ) -> None:
        super().__init__()
        self.line_end = line_end
        self.character, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, attend) for _ in range(layers))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))
        self.apply(begin_small)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores of shape (batch, length, vocabulary) for characters of shape (batch, length)."""
        ends = x == (-1 if self.line_end is None else self.line_end)
        lines = ends.cumsum(dim=1) - ends.long()  # a line's end belongs to the line
        y = self.character(x) + self.place.weight[: x.shape[1]]
        for block in self.blocks:
            y = block(y, lines)
        return self.out(y)


class Block(nn.Module):
    """One block. Attention collects values from earlier characters; then a small network processes each position separately."""

    def __init__(self, width: int, heads: int, attend: Attend | None) -> None:
        super().__init__()
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, attend)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, lines: torch.Tensor) -> torch.Tensor:
        """Return the input plus the outputs of attention and the network, so a block corrects its input instead of replacing
        it."""
        x = x + self.attention(self.before_attention(x), lines)
        return x + self.network(self.before_network(x))


class Attention(nn.Module):
    """Attention with several heads. Each character has a query, and each earlier one a key; values are weighted by how well
    they match."""

    def __init__(self, width: int, heads: int, attend: Attend | None) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        self.torchs = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: torch.Tensor, lines: torch.Tensor) -> torch.Tensor:
        """Return the weighted mean of the values of the earlier characters."""
        if self.attend is None:
            future = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
            return self.torchs(x, x, x, attn_mask=future, need_weights=False)[0]  # no position looks at later ones
        query, key, value = nn.functional.linear(x, self.torchs.in_proj_weight, self.torchs.in_proj_bias).chunk(3, dim=-1)
        return self.torchs.out_proj(self.attend(query, key, value, self.heads, lines))


def begin_small(part: nn.Module) -> None:
    """Set the first weights near zero, so that an untrained model prefers no character and its loss is that of guessing."""
    if isinstance(part, (nn.Linear, nn.Embedding)):
        nn.init.normal_(part.weight, std=0.02)
    if isinstance(part, nn.Linear):
        nn.init.zeros_(part.bias)
    if isinstance(part, nn.MultiheadAttention):
        nn.init.normal_(part.in_proj_weight, std=0.02)
