"""A solution of 5.12: the block is one graph, because decisions are arithmetic on tensors and the step arrives as a tensor."""

from __future__ import annotations

import torch
from compilations import LIMIT, WARM_UP
from torch.nn import functional


def block(x, residual, weight, bias, gate, warm_up):
    """Return the result of the block. `warm_up` is a tensor of one number."""
    h = functional.layer_norm(x, x.shape[-1:], weight, bias)
    rms = h.square().mean().sqrt()
    h = h * torch.clamp(LIMIT / rms, max=1.0)
    gate = torch.where(gate.sum() < 0, -gate, gate)
    h = functional.gelu(h * gate, approximate="tanh")
    return residual + h * warm_up


def compile_block(backend):
    """Return the compiled block. torch makes the length dynamic when it sees a second length."""
    compiled = torch.compile(block, backend=backend)

    def call(x, residual, weight, bias, gate, step):
        warm_up = torch.tensor(min(1.0, (step + 1) / WARM_UP))
        return compiled(x, residual, weight, bias, gate, warm_up)

    return call
