"""Your part of 1.4: a result that fits where its data does not.

You will learn    that memory is taken by what is held at the same time, and not by what passes through
You will produce  a `sums_of_squares` that runs at full size, is right, reads every row once and leaves nothing behind
Try it            gpucourse try 1.4; gpucourse run 1.4 runs it on the device of the exercise, too
Your part         the body of `sums_of_squares`; keep its name and its parameters
Reading           modules/01-basic-gpu/lesson.md, "Out of memory"
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def sums_of_squares(load: Callable[[int, int], torch.Tensor], rows: int) -> torch.Tensor:
    """For each column the sum of the squares of all `rows` rows.

    `load(first, count)` reads the rows from `first` to `first + count - 1`, as a tensor of shape (count, columns) in float32 on
    the device. The plain way is two lines, table = load(0, rows) and return (table * table).sum(dim=0). It runs out of memory:
    the table is a fifth larger than the device. On simulated nodes that has room for 61,440 rows, on a GPU for millions. Each
    load takes as long as a few launches, however few rows it reads: read hundreds of them at a time, at least.
    """
    raise NotImplementedError("sums_of_squares: which part of the table has to be there at the same time?")
