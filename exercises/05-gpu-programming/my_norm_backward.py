"""Your second part of 5.6: the backward pass of layer norm and dropout, in one Triton kernel that draws the mask again.

You will learn    why no mask has to be stored, and which tensors a backward pass cannot do without
You will produce  the gradient of x, from one kernel that reads two tensors and writes one
Try it            gpucourse try 5.6 (in the interpreter, on the processor); gpucourse run 5.6 also compiles it for GPUs
Your part         the body of `gradient_of_row`; then remove the line of `backward` that says it is not written. Keep both
                  names and their parameters
Reading           modules/05-gpu-programming/lesson-8-fusion.md, "Backward"
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def gradient_of_row(grad_ptr, x_ptr, weight_ptr, grad_x_ptr, stride, n, eps, p, seed, BLOCK: tl.constexpr):
    """Compute the gradient of one row of x in each program, from the gradient of that row of y.

    All tensors but the weight have rows of n numbers that begin `stride` apart. Nothing of the forward pass was kept but x.
    The forward pass numbered all places from 0 on, row by row, and kept a number if tl.rand of its place was at least p.
    """
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    # yours: load each number once, and store one gradient for each number of the row


def backward(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Return the gradient of x, given the gradient of y, both of shape (rows, n). eps is 1e-5, as in the forward pass."""
    raise NotImplementedError("gradient_of_row: in which order did the forward pass do its steps?")  # remove this line
    rows, n = x.shape
    grad_x = torch.empty_like(x)
    block = triton.next_power_of_2(n)
    gradient_of_row[(rows,)](grad, x, weight, grad_x, x.stride(0), n, 1e-5, p, seed, BLOCK=block)
    return grad_x
