"""Your part of 1.4: compute a result from data that does not fit, on a device that others use as well.

You will learn    that memory is taken by what is held at the same time, and how to go on after it has run out
You will produce  a `sums_of_squares` that is right at full size, adapts to the memory that is free, and leaves nothing behind
Try it            gpucourse try 1.4; gpucourse run 1.4 also runs it on the device of the exercise
Your part         the body of `sums_of_squares`; keep its name and its parameters, and add functions as you need them
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
    table is a fifth larger than the device. How much fits at the same time is not known, and may change while you read: another
    program may take most of the memory, until only a few hundred rows fit. Whatever does not fit raises torch.OutOfMemoryError.

    A load takes as long as it takes to read 2,000 rows, however few it reads, so read at least 2,000 at a time while they fit.
    Read a row again only if memory ran out before you could use it.
    """
    raise NotImplementedError(
        "sums_of_squares: how much of the table do you need at the same time, and what if it does not fit?"
    )
