"""Your first part of 9.5: a linear layer in 8 bits, forward and backward, and updates of weights that have 16 bits.

You will learn    what a training step has to round, along which dimension, what it keeps for backward, and when to use chance
You will produce  `forward` and `backward` of a linear layer with E4M3 operands, and `stochastic`
Try it            gpucourse try 9.5
Your part         the bodies of the three functions; keep their names and parameters
Reading           modules/09-frontier-training/lesson-6-formats.md, "Three products" and "Weights and their updates"

`forward` and `backward` get `cast` and `multiply`, which do what a GPU can do. `cast(matrix)` returns the matrix in E4M3, with
a scale for every 32 neighbours along the last dimension; its method `values()` returns the float32 matrix that it stands for.
`multiply(a, b)` accepts two results of `cast`, a [m, k] and b [n, k], and returns the product [m, n], a sum over k, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Cast = Callable[[torch.Tensor], Any]
Multiply = Callable[[Any, Any], torch.Tensor]


def forward(x: torch.Tensor, weight: torch.Tensor, cast: Cast, multiply: Multiply) -> tuple[torch.Tensor, Any]:
    """Return the output x @ weight.T [tokens, out] in float32, and what `backward` needs of x.

    `x` is [tokens, in], and `weight` is [out, in], both float32 and with sizes that are multiples of 32. What you return for
    `backward` is a tensor, a result of `cast`, or a tuple of them. It has less than 1.2 bytes for each number of x.
    """
    raise NotImplementedError("forward: which product of backward needs x, and over which dimension does it sum?")


def backward(
    gradient: torch.Tensor, weight: torch.Tensor, context: Any, cast: Cast, multiply: Multiply
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of x [tokens, in] and of the weight [out, in], both float32.

    `gradient` [tokens, out] is that of the output, in float32. `context` is what `forward` returned. Every operand of a product
    is in E4M3, was rounded only once, from float32, and has scales that a GPU can apply after the sum.
    """
    raise NotImplementedError("backward: over which dimension does each of the two products sum?")


def stochastic(x: torch.Tensor, mantissa_bits: int, generator: torch.Generator) -> torch.Tensor:
    """Return one of the two neighbours of each number of x (float32, any shape) in a smaller format, at random, as float32.

    The format has the exponents of float32, and `mantissa_bits` stored bits of mantissa: bfloat16 has 7. A number of the format
    stays as it is. The probabilities are such that the mean of many roundings of a number is that number. Each number of x has
    its own random number from `generator`: two calls after the same seed return the same.
    """
    raise NotImplementedError("stochastic: how far apart are the neighbours of x, and how probable is the upper one?")
