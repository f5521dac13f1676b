"""Solve the split backward of 9.4: store a function for each layer, which computes its weight's gradient later."""

from __future__ import annotations

from collections.abc import Callable

import torch


class SplitLinear(torch.autograd.Function):
    """The product of a layer."""

    @staticmethod
    def forward(ctx, x, weight, store):
        """Return y = x Wᵀ, and keep x without its graph."""
        ctx.x, ctx.weight, ctx.store = x.detach(), weight, store
        return torch.nn.functional.linear(x, weight)

    @staticmethod
    def backward(ctx, gradient):
        """Return the gradient of x."""
        x, weight = ctx.x, ctx.weight

        def add() -> None:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            weight.grad.addmm_(gradient.t(), x)

        ctx.store.append(add)
        return gradient.mm(weight.detach()), None, None


def compute_weights(store: list[Callable[[], None]]) -> None:
    """Call the stored functions, which add the gradients of the weights."""
    while store:
        store.pop()()
