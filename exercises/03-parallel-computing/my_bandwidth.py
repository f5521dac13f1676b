"""Your part of 3.3: from the time of a collective to a bandwidth that you can compare with a link's data sheet.

You will learn    why algorithm bandwidth says nothing about the link, and which factor makes it comparable
You will produce  a `busbw` that is right for all four collectives and any number of ranks
Try it            gpucourse try 3.3
Your part         the body of `busbw`; keep its name and its parameters
Reading           modules/03-parallel-computing/lesson.md, "Which bandwidth?"
"""

from __future__ import annotations


def busbw(collective: str, size: float, seconds: float, ranks: int) -> float:
    """Return the bus bandwidth in GB/s, where GB = 10**9 bytes.

    `collective` is "all_reduce", "broadcast", "all_gather" or "reduce_scatter". `size` is the size of the whole tensor in
    bytes: what each rank has after an all_gather, or before a reduce_scatter. `seconds` is the time of one call.
    """
    raise NotImplementedError("busbw: how often must each byte cross the busiest link?")
