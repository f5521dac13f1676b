"""Another solution of 5.7: compare the two times, in units of the time for one byte."""

from __future__ import annotations

import math


def find_bound(kernel: str, n: int, ridge: float) -> str:
    """Return "memory" or "compute"."""
    number, index = 4, 8
    match kernel:
        case "saxpy":
            time, work = 3 * number, 2
        case "layer norm":
            time, work = 2 * number, 8
        case "stencil":
            time, work = 2 * number, 6
        case "spmv":
            time, work = 8 * (number + index) + index + 2 * number, 16
        case "fft":
            time, work = 4 * number, 5 * math.log2(4096)
        case "forces":
            time, work = 7 * number, 20 * n
        case _:
            time, work = 3 * number, 2 * n
    return "compute" if work / ridge >= time else "memory"
