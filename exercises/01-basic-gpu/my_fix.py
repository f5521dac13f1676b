"""Your fix of exercise 1.4. This works on a small table, and runs out of memory on one that is larger than the device.

You will learn    that a result can fit where its data does not
You will produce  a `sums_of_squares` that runs at full size, is right, reads every row once and leaves nothing behind
Run it            python memory_management.py (which calls it); to be checked: gpucourse run 1.4
Your part         the body of `sums_of_squares`; nothing else here or in memory_management.py
Reading           modules/01-basic-gpu/lesson.md, "Out of memory"
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def sums_of_squares(load: Callable[[int, int], torch.Tensor], rows: int) -> torch.Tensor:
    """For each column the sum of the squares of all `rows` rows.

    `load(first, count)` gives the rows from `first` to `first + count - 1`, as a tensor on the device.
    """
    table = load(0, rows)
    squares = table * table
    return squares.sum(dim=0)
