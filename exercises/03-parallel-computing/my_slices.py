"""Your part of 3.9: a layer that is split over ranks and equals the whole layer, forward and backward.

You will learn    which part of a matrix a rank holds; where a sum is needed, forward and backward, and where none is
You will produce  a column-parallel and a row-parallel linear layer, which hold every layer of a transformer in slices
Try it            gpucourse try 3.9
Your part         the bodies of `cut`, `column_linear` and `row_linear`; keep their names and parameters
Reading           modules/03-parallel-computing/lesson-3-dividing.md, "A mesh: copies of slices"
"""

from __future__ import annotations

import torch
import torch.distributed as dist  # noqa: F401  # for what you write
from torch.nn.functional import linear  # noqa: F401  # x @ weight.T + bias, or without a bias


def cut(weight: torch.Tensor, bias: torch.Tensor, how: str, rank: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the parts of a linear layer's weight and bias that this rank of `size` holds.

    torch stores a weight as (outputs, inputs) and computes x @ weight.T + bias. If the weight is cut by "columns", each rank
    computes a share of the outputs. If it is cut by "rows", each rank uses a share of the inputs, and has the whole bias. The
    slices are in the order of the ranks and have equal sizes: outputs and inputs are multiples of `size`.
    """
    raise NotImplementedError("cut: which dimension of the stored weight is the outputs?")


def column_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return this rank's share of the outputs, from the whole `x`, which all ranks have. `weight` and `bias` are its slices.

    Backward, all ranks need the gradient of `x` that the whole layer would have. (A torch.autograd.Function may do
    something different in its backward pass.)
    """
    raise NotImplementedError("column_linear: what must happen to the gradient of x?")


def row_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return the whole outputs, the same on all ranks, from this rank's share `x` of the inputs and its slice `weight`.

    Backward, each rank needs the gradient of its own share `x`. `bias` is the whole bias, the same on all ranks.
    """
    raise NotImplementedError("row_linear: where do you sum, and where do you add the bias?")
