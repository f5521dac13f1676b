"""The models that exercise 5.5 serves: a decoder transformer, and two models that read a value before they continue.

One of the two does so for a single batch size only. The transformer has causal attention (Vaswani et al., 2017), with the
normalisation before each half of a layer, as in GPT-2.
"""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    """A layer: attention, then two linear layers, each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        cut = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = cut.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Maps tokens (batch, length) to the scores of the next token (batch, vocabulary)."""

    def __init__(self, vocabulary: int, length: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.vocabulary, self.length = vocabulary, length
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token(tokens) + self.place
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x[:, -1]))


class EarlyExit(nn.Module):
    """A model that stops early when it is sure. Its operations depend on a value that the host must read."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model, self.small = model, nn.Linear(model.length, model.vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        scores = self.small(tokens.float())
        if tokens.float().mean() < self.model.vocabulary / 2:  # the host waits for the device here
            return scores
        return self.model(tokens)


class ReadsAtOneSize(nn.Module):
    """A model that reads a value only if a batch has `size` sequences."""

    def __init__(self, model: Transformer, size: int) -> None:
        super().__init__()
        self.model, self.size = model, size

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        if len(tokens) == self.size and not tokens.float().mean().isfinite():  # the host waits for the device here
            raise ValueError("tokens are numbers")
        return self.model(tokens)
