"""Solve the split backward of 9.4: store each layer's input and output gradient, and multiply them later."""

from __future__ import annotations

from typing import Any

import torch


class SplitLinear(torch.autograd.Function):
    """The product of a layer."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, store: list[Any]) -> torch.Tensor:
        """Return y = x Wᵀ."""
        ctx.save_for_backward(x, weight)
        ctx.store = store
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return the gradient of x."""
        x, weight = ctx.saved_tensors
        ctx.store.append((weight, gradient.detach(), x.detach()))
        return gradient @ weight, None, None


def compute_weights(store: list[Any]) -> None:
    """Add the gradients of the weights."""
    for weight, gradient, x in store:
        added = gradient.T @ x
        weight.grad = added if weight.grad is None else weight.grad + added
    store.clear()
