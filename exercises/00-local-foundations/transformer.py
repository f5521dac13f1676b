"""The whole tiny transformer of exercise 0.1: a large language model is made of the same parts, with larger numbers.

You will learn    what a block is made of, how attention looks back, and what keeps it from looking ahead
You will produce  nothing by itself: tiny_transformer.py trains it
Run it            python tiny_transformer.py
Your part         take out the mask, or `place`, or the `x +` of a block; predict what happens to the loss
Reading           modules/00-local-foundations/lesson.md, "What is in a block"
"""

from __future__ import annotations

import math

import torch
from torch import nn


class TinyTransformer(nn.Module):
    """A model that turns each character and its position into `width` numbers, passes them through the blocks, and returns
    scores."""

    def __init__(self, vocabulary: int, context: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.character, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))
        self.apply(begin_small)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores of shape (batch, length, vocabulary) for characters of shape (batch, length)."""
        return self.out(self.blocks(self.character(x) + self.place.weight[: x.shape[1]]))


class Block(nn.Module):
    """One block. Attention collects values from earlier characters; then a small network processes each position separately."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input plus the outputs of attention and the network, so a block corrects its input instead of replacing
        it."""
        x = x + self.attention(self.before_attention(x))
        return x + self.network(self.before_network(x))


class Attention(nn.Module):
    """Attention with several heads. Each character has a query, and each earlier one a key; values are weighted by how well
    they match."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.ask_offer_give, self.back = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the weighted mean of the values of the earlier characters."""
        batch, length, width = x.shape
        parts = self.ask_offer_give(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(dim=2))
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(diagonal=1)
        weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)  # no position looks at later ones
        return self.back((weights @ value).transpose(1, 2).reshape(batch, length, width))


def begin_small(part: nn.Module) -> None:
    """Set the first weights near zero, so that an untrained model prefers no character and its loss is that of guessing."""
    if isinstance(part, (nn.Linear, nn.Embedding)):
        nn.init.normal_(part.weight, std=0.02)
    if isinstance(part, nn.Linear):
        nn.init.zeros_(part.bias)
