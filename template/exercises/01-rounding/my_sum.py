"""Your part of 1.1: a sum that loses less. Try it with: gpucourse try 1.1"""

from __future__ import annotations

from collections.abc import Callable


def add_in_pairs(values: list[float], add: Callable[[float, float], float]) -> float:
    """Return the sum of `values` (one number or more, in any unit), made in rounds: each round adds neighbours, two at a time.

    `add(left, right)` is the only addition: it rounds its result to half precision.
    """
    raise NotImplementedError("add_in_pairs: which two numbers of a round are added, and what becomes of one that is left?")
