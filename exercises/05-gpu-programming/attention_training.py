"""Train a small model with a given attention, and count the bytes that the attention saves for its backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

TOKENS, LENGTH, HEADS, D, LAYERS, STEPS, SEED = 8, 56, 2, 16, 2, 10, 11
LEARNING_RATE = 0.3
Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]  # q, k and v of shape (heads, length, d)


class Reader(nn.Module):
    """A model with two layers of attention, which learns to output the previous token at each place."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        width = HEADS * D
        self.attend = attend
        self.tokens, self.places = nn.Embedding(TOKENS, width), nn.Embedding(LENGTH, width)
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(LAYERS))
        self.mix = nn.ModuleList(nn.Linear(width, width) for _ in range(LAYERS))
        self.out = nn.Linear(width, TOKENS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of the repeated token at each place. q, k and v are views that are not contiguous."""
        x = self.tokens(tokens) + self.places.weight
        for qkv, mix in zip(self.qkv, self.mix, strict=True):
            q, k, v = qkv(x).view(LENGTH, 3, HEADS, D).permute(1, 2, 0, 3)
            x = x + mix(self.attend(q, k, v).transpose(0, 1).flatten(1))
        return self.out(x)


def attend_plainly(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return causal attention, computed with the whole matrix of scores."""
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=q.device).triu(1)
    return (q @ k.mT * D**-0.5).masked_fill(hidden, float("-inf")).softmax(-1) @ v


def train(attend: Attend, device: torch.device) -> dict[str, Any]:
    """Return the loss of each step, and the bytes that a layer's attention keeps for its backward pass."""
    torch.manual_seed(SEED)
    sizes: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()  # views of one memory count once
        return tensor

    def attend_and_count(*inputs: torch.Tensor) -> torch.Tensor:
        sizes.clear()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            return attend(*inputs)

    model = Reader(attend_and_count).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    tokens = torch.randint(TOKENS, (LENGTH,)).to(device)  # on the processor, so the same on every device
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens)[1:], tokens[:-1])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "kept_bytes": sum(sizes.values())}
