"""The picture of module 6's lesson on ZeRO: the data on each rank at each stage."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas

KINDS = (("weights", 4, 3, "a"), ("gradients", 4, 2, "b"), ("moments", 8, 1, "c"))
"""What a rank holds: its bytes per parameter in float32 with AdamW, the stage that divides it, its colour."""


def count_bytes(stage: int, ranks: int) -> float:
    """Return the bytes per parameter on one rank, for weights, gradients and moments."""
    return sum(size / (ranks if stage >= first else 1) for _, size, first, _ in KINDS)


def draw_stages(ranks: int = 4) -> Canvas:
    """Draw the weights, gradients and moments of each rank at the four stages."""
    sums = [count_bytes(stage, ranks) for stage in range(4)]
    picture = Canvas(
        "What a rank holds at each stage of ZeRO",
        f"Four groups of {ranks} rows, one group per stage and one row per rank. At stage 0, each rank has all weights, all "
        f"gradients and all moments: {sums[0]:g} bytes per parameter. At stage 1 it has a quarter of the moments: {sums[1]:g} "
        f"bytes. At stage 2 it also has only a quarter of the gradients: {sums[2]:g} bytes. At stage 3 it has a quarter of "
        f"everything: {sums[3]:g} bytes.",
        338,
    )
    left, scale, row_height = 66, 17.0, 15
    x = float(left)
    for name, size, _, _ in KINDS:
        picture.note(x + size * scale / 2, 18, f"{name}: {size}", anchor="middle")
        x += size * scale + 8
    for stage in range(4):
        top = 28 + stage * 72
        picture.heading(8, top + 34, f"stage {stage}")
        for rank in range(ranks):
            x, y = float(left), top + rank * row_height
            for _, size, first, colour in KINDS:
                picture.box(x, y, size * scale, row_height - 3, "empty")
                share = size * scale / (ranks if stage >= first else 1)
                picture.box(x + (rank * share if stage >= first else 0), y, share, row_height - 3, colour)
                x += size * scale + 8
        picture.heading(x + 14, top + 26, f"{sums[stage]:g} bytes per parameter")
        picture.note(x + 14, top + 44, f"on each of {ranks} ranks; {100 * sums[stage] / sums[0]:g} % of stage 0")
    words = f"Each row is a rank; its share of {ranks} is coloured. float32 and AdamW: 4 + 4 + 8 bytes per parameter."
    picture.note(8, 330, words)
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"zero-stages": draw_stages}
