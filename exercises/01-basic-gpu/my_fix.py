"""Your part of 1.4: compute a result from data that does not fit.

You will learn    that memory is taken by what is held at the same time, not by everything that is read
You will produce  a `sums_of_squares` that runs at full size, is right, reads every row once and leaves nothing behind
Try it            gpucourse try 1.4; gpucourse run 1.4 also runs it on the device of the exercise
Your part         the body of `sums_of_squares`; keep its name and its parameters
Reading           modules/01-basic-gpu/lesson-3-watching.md, "Out of memory"
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def sums_of_squares(load: Callable[[int, int], torch.Tensor], rows: int) -> torch.Tensor:
    """Return, for each column, the sum of the squares of all `rows` rows.

    `load(first, count)` reads the rows from `first` to `first + count - 1`, as a float32 tensor of shape (count, columns) on
    the device.

    The plain way is two lines: table = load(0, rows) and return (table * table).sum(dim=0). It runs out of memory, because the
    table is a fifth larger than the device. The device has room for 61,440 rows on simulated nodes, and for millions on a GPU.
    Each load takes as long as a few launches, however few rows it reads, so read at least hundreds of rows at a time.
    """
    raise NotImplementedError("sums_of_squares: how much of the table do you need at the same time?")
