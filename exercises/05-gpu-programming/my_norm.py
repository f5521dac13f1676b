"""Your part of 5.6: layer norm and dropout in one Triton kernel.

You will learn    how a Triton program works on a block with a mask, and what the lanes outside the row do to a sum
You will produce  a kernel that reads and writes each row once, whatever its length, with the same mask for the same seed
Try it            gpucourse try 5.6 (in the interpreter, on the processor); gpucourse run 5.6 also compiles it for GPUs
Your part         find what is wrong if a row is shorter than the block; then add dropout to the kernel, and let `launch`
                  pass p > 0; last, decide how stride and n are passed. Keep both names and their parameters
Reading           modules/05-gpu-programming/lesson-8-fusion.md, "A row in one program" and "Dropout without a mask"
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def norm_dropout(x_ptr, weight_ptr, bias_ptr, y_ptr, stride, n, eps, p, seed, BLOCK: tl.constexpr):
    """Compute one row of n numbers in each program: y = dropout((x - mean) / sqrt(variance + eps) * weight + bias).

    BLOCK is the smallest power of two that is at least n, so the last lanes may lie outside the row. Row r begins at r * stride
    in x and y.

    Dropout sets a share `p` of the numbers to 0, and divides the others by 1 - p, so that the mean stays the same. The same
    seed drops the same numbers; another seed drops others. No two rows or columns share a random number.
    tl.rand(seed, offsets) returns a number from 0 to 1 for each offset, always the same for the same seed and offset.
    """
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    x = tl.load(x_ptr + row * stride + columns, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    centred = x - mean
    variance = tl.sum(centred * centred, axis=0) / n
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    y = centred * tl.rsqrt(variance + eps) * weight + bias
    tl.store(y_ptr + row * stride + columns, y, mask=inside)


def launch(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Return x, of shape (rows, n), after layer norm over the last dimension with eps 1e-5, and dropout of a share p."""
    if p > 0:
        raise NotImplementedError("norm_dropout: which random number belongs to each place, and which numbers are kept?")
    rows, n = x.shape
    y = torch.empty_like(x)
    norm_dropout[(rows,)](x, weight, bias, y, x.stride(0), n, 1e-5, p, seed, BLOCK=triton.next_power_of_2(n))
    return y
