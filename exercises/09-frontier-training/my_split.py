"""Your part of 9.4: a layer whose backward pass leaves the gradient of its weights for later.

You will learn    which two products a backward pass consists of, what each of them needs, and what must stay in memory
You will produce  a product for torch's autograd, and the second half of its backward pass
Try it            gpucourse try 9.4
Your part         the bodies of `forward`, `backward` and `compute_weights`; keep their names and parameters
Reading           modules/09-frontier-training/lesson-5-pipelines.md, "Two products"
"""

from __future__ import annotations

from typing import Any

import torch


class SplitLinear(torch.autograd.Function):
    """The product of a layer, y = x Wᵀ. The run calls `SplitLinear.apply(x, weight, store)`."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, store: list[Any]) -> torch.Tensor:
        """Return y, of shape (rows, outputs), for x of shape (rows, inputs) and a weight of shape (outputs, inputs).

        `store` is an empty list that belongs to this micro-batch. All layers of a stage share it.
        """
        raise NotImplementedError("SplitLinear.forward: what will the backward pass need?")

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return the gradient of x, and None for the weight and the store.

        The weight must not get a gradient here. What `compute_weights` needs for it goes into the store, without the graph of
        the layers before this one: the run frees that graph now.
        """
        raise NotImplementedError("SplitLinear.backward: which product does the previous stage wait for?")


def compute_weights(store: list[Any]) -> None:
    """Compute the gradients of the weights from what `backward` stored for one micro-batch, and add them to `weight.grad`.

    `weight.grad` is None before the first micro-batch of a step, and has the sum of the earlier ones later.
    """
    raise NotImplementedError("compute_weights: which product is left?")
