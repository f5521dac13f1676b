"""A solution of 6.1: go through the blocks, and keep only sums of bytes and operations that no other sum beats."""

from __future__ import annotations


def place(kept: list[int], left: list[int], operations: list[int], limit: int) -> list[int] | None:
    """Return the placement. When a block's backward begins, the block is whole; those before it have what forward kept."""
    sums: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    for number, (all_bytes, few_bytes, count) in enumerate(zip(kept, left, operations, strict=True)):
        fitting = [item for item in sums if item[0] + all_bytes <= limit]
        longer = [(held + all_bytes, cost, chosen) for held, cost, chosen in fitting]
        longer += [(held + few_bytes, cost + count, (*chosen, number)) for held, cost, chosen in fitting]
        sums = []
        for item in sorted(longer):
            if not sums or item[1] < sums[-1][1]:
                sums.append(item)
    return list(min(sums, key=lambda item: item[1])[2]) if sums else None
