"""Another solution of 3.9, without autograd functions: a hook sums the gradient of x, and autograd does not see the sum of the
outputs."""

from __future__ import annotations

import torch
import torch.distributed as dist


def cut(weight: torch.Tensor, bias: torch.Tensor, how: str, rank: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's slices."""
    outputs, inputs = weight.shape
    if how == "rows":
        share = slice(rank * inputs // size, (rank + 1) * inputs // size)
        return weight[:, share].clone(), bias.clone()
    share = slice(rank * outputs // size, (rank + 1) * outputs // size)
    return weight[share].clone(), bias[share].clone()


def _sum_over_ranks(gradient: torch.Tensor) -> torch.Tensor:
    total = gradient.contiguous().clone()
    dist.all_reduce(total)
    return total


def column_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return this rank's share of the outputs."""
    entry = x * 1
    if entry.requires_grad:
        entry.register_hook(_sum_over_ranks)
    return entry @ weight.T + bias


def row_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the whole outputs."""
    part = x @ weight.T
    remote_sum = _sum_over_ranks(part.detach()) - part.detach()
    return part + remote_sum + bias
