"""A solution of 5.6's backward pass: it draws the mask first, because dropout is the last operation of the forward pass,
and needs two means of each row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def gradient_of_row(grad_ptr, x_ptr, weight_ptr, grad_x_ptr, stride, n, eps, p, seed, BLOCK: tl.constexpr):
    """Compute the gradient of one row of x in each program."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    places = row * stride + columns
    x = tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + places, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + eps)
    normed = centred * scale
    is_kept = tl.rand(seed, row * n + columns) >= p
    grad = tl.where(is_kept, grad / (1 - p), 0.0) * weight
    first = tl.sum(grad, axis=0) / n
    second = tl.sum(grad * normed, axis=0) / n
    tl.store(grad_x_ptr + places, (grad - first - normed * second) * scale, mask=inside)


def backward(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Return the gradient of x, given the gradient of y."""
    rows, n = x.shape
    grad_x = torch.empty_like(x)
    block = triton.next_power_of_2(n)
    gradient_of_row[(rows,)](grad, x, weight, grad_x, x.stride(0), n, 1e-5, p, seed, BLOCK=block)
    return grad_x
