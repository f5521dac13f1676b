"""Solve the training step of 9.5 with a product of values, a transposed weight gradient, and random numbers below one step."""

from __future__ import annotations

import torch


def forward(x, weight, cast, multiply):
    """Return the output, and x as backward needs it."""
    return multiply(cast(weight), cast(x)).T, cast(x.T.contiguous())


def backward(gradient, weight, context, cast, multiply):
    """Return both gradients."""
    of_x = cast(gradient).values() @ cast(weight.T).values().T
    return of_x, multiply(context, cast(gradient.T)).T


def stochastic(x, mantissa_bits, generator):
    """Return x with random bits added to those that are cut off."""
    lost = 23 - mantissa_bits
    noise = torch.randint(0, 1 << lost, x.shape, generator=generator, dtype=torch.int32)
    return ((x.contiguous().view(torch.int32) + noise) & -(1 << lost)).view(torch.float32)
