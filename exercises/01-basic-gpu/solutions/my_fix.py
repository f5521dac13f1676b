"""A solution of 1.4: it reads one part after another, reads smaller parts once memory runs out, and keeps only the sums."""

from __future__ import annotations

from collections.abc import Callable

import torch


def sum_part(load: Callable[[int, int], torch.Tensor], first: int, count: int) -> torch.Tensor | None:
    """Return the sums of a part, or None if it does not fit.

    When this function returns, the error and the tensors that it kept alive are freed.
    """
    try:
        piece = load(first, count)
        return piece.square_().sum(dim=0, dtype=torch.float64)
    except torch.OutOfMemoryError:
        return None


def sums_of_squares(load: Callable[[int, int], torch.Tensor], rows: int) -> torch.Tensor:
    """Return, for each column, the sum of the squares of all `rows` rows."""
    total, first, count = 0, 0, rows
    while first < rows:
        count = min(count, rows - first)
        sums = sum_part(load, first, count)
        if sums is not None:
            total, first = total + sums, first + count
        elif count == 1:
            raise torch.OutOfMemoryError("not even one row fits")
        else:
            count //= 2
    return total
