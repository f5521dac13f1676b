"""Your part of 5.12: a block that torch.compile breaks into pieces, and compiles again and again.

You will learn    what ends a graph, what makes torch compile again, and how to find the line that does
You will produce  a block that is one graph, compiled at most twice for all lengths and steps, with the same values
Try it            gpucourse try 5.12 counts the graphs; gpucourse run 5.12 compares them with those of this version
Your part         the bodies of `block` and `compile_block`; add functions as you like
Reading           modules/05-gpu-programming/lesson-14-compile.md
"""

from __future__ import annotations

import torch
from compilations import LIMIT, WARM_UP
from torch.nn import functional

calls_so_far = {"count": 0}


def block(x, residual, weight, bias, gate, step):
    """Return residual + warm-up * gelu(gate * h), where h is the layer norm of x, scaled down to a root mean square of LIMIT.

    `x` and `residual` are (tokens, width); `weight`, `bias` and `gate` are (width); `step` is a whole number from 0 on. The
    gate is negated if its sum is negative. The warm-up grows from 1 / WARM_UP at step 0 to 1. What it prints is not needed.
    """
    calls_so_far["count"] += 1
    h = functional.layer_norm(x, x.shape[-1:], weight, bias)
    rms = h.square().mean().sqrt().item()
    if rms > LIMIT:
        h = h * (LIMIT / rms)
    if gate.sum() < 0:
        gate = -gate
    print(f"call {calls_so_far['count']}, step {step}: rms {rms:.3f}")
    h = functional.gelu(h * gate, approximate="tanh")
    return residual + h * min(1.0, (step + 1) / WARM_UP)


def compile_block(backend):
    """Return a function with the arguments and the result of `block`, compiled by torch.compile with this `backend`.

    It is called with 12 lengths (tokens) and 12 steps, always as tensors and a whole number. All the work on tensors has to be
    in one graph; the function that you return may prepare the step.
    """
    return torch.compile(block, backend=backend, dynamic=False)
