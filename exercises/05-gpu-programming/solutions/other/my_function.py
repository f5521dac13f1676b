"""Another solution of 5.12: the length is dynamic from the first call on, and torch may keep the step as a symbol."""

from __future__ import annotations

import torch
from compilations import LIMIT, WARM_UP
from torch import nn


def block(x, residual, weight, bias, gate, step):
    """Return the result of the block. `step` is a whole number, dynamic like the length."""
    h = nn.functional.layer_norm(x, (x.size(1),), weight, bias)
    h = h / torch.maximum(h.pow(2).mean().sqrt() / LIMIT, h.new_ones(()))
    gate = gate * (1 - 2 * (gate.sum() < 0).to(gate.dtype))
    h = nn.functional.gelu(gate * h, approximate="tanh")
    return h * min(1.0, (step + 1) / WARM_UP) + residual


def compile_block(backend):
    """Return the block, compiled for any length and any step."""
    return torch.compile(block, backend=backend, dynamic=True, fullgraph=True)
