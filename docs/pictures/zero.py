"""The pictures of module 6's lessons on ZeRO and FSDP: what each rank holds at each stage, and when it has whole blocks."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas

KINDS = (("weights", 4, 3, "a"), ("gradients", 4, 2, "b"), ("moments", 8, 1, "c"))
"""What a rank holds: its bytes per parameter in float32 with AdamW, the stage that divides it, its colour."""


def count_bytes(stage: int, ranks: int) -> float:
    """Return the bytes per parameter that one rank holds of the three kinds."""
    return sum(size / (ranks if stage >= first else 1) for _, size, first, _ in KINDS)


def draw_stages(ranks: int = 4) -> Canvas:
    """Draw weights, gradients and moments of each rank at the four stages."""
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


def draw_fsdp(blocks: int = 4) -> Canvas:
    """Draw a step on one rank as a line of time: computations, collectives, and the blocks that are whole."""
    picture = Canvas(
        "One step of FSDP on one rank",
        f"Three rows over time. The first shows {blocks} blocks computing forward, then backward in the opposite order. In the "
        "second, the links gather each block's weights while the block before it computes, and reduce-scatter its gradients "
        "after its backward. The third shows that at most two blocks are in memory whole at any time.",
        190,
    )
    left, width = 92.0, 58.0
    for y, words in ((46, "computes"), (84, "links"), (122, "whole")):
        picture.heading(8, y, words)
    order = [*range(blocks), *reversed(range(blocks))]
    for place, block in enumerate(order):
        x, is_backward = left + (place + 1) * width, place >= blocks
        picture.box(x, 30, width - 4, 24, "b" if is_backward else "a", f"B {block}" if is_backward else f"F {block}")
        before = x - width
        picture.box(before, 68, width / 2 - 2, 24, "c", f"g {block}")
        if is_backward:
            picture.box(x + width * 1.5, 68, width / 2 - 4, 24, "d", f"r {block}")
        picture.box(before, 106 + 18 * (place % 2), 2 * width - 4, 15, "empty", f"block {block}")
    picture.legend(156, (92, "a", "forward"), (200, "b", "backward"), (318, "c", "gather"), (420, "d", "reduce-scatter"))
    return picture


def draw_two_levels(nodes: int = 2, per_node: int = 4) -> Canvas:
    """Draw a ring of all ranks, and rings of the ranks that have the same place in their nodes."""
    ranks = nodes * per_node
    picture = Canvas(
        "Two ways to exchange data between nodes",
        "A ring of eight ranks on two nodes. Six links stay inside a node, and two lead to the other node. Beside it, four "
        "rings of two ranks, one for each place in a node: each carries a quarter of the numbers, over links between nodes.",
        190,
    )
    for left, words in ((8, f"one ring of {ranks} ranks"), (400, f"{per_node} rings of {nodes} ranks")):
        picture.heading(left, 16, words)
        for node in range(nodes):
            picture.box(left, 30 + node * 70, 4 * 84 + 4, 44, "empty")
            for place in range(per_node):
                x = left + 8 + 84 * (place if node == 0 else per_node - 1 - place) if left == 8 else left + 8 + 84 * place
                picture.box(x, 40 + node * 70, 60, 24, "a", f"rank {node * per_node + place}")
    for place in range(per_node - 1):
        x = 8 + 8 + 84 * place
        picture.line(x + 60, 52, x + 84, 52, "curve sc")
        picture.line(x + 60, 122, x + 84, 122, "curve sc")
    for x in (8 + 38, 8 + 38 + 84 * (per_node - 1)):
        picture.line(x, 64, x, 110, "curve sd")
    for place in range(per_node):
        picture.line(400 + 38 + 84 * place, 64, 400 + 38 + 84 * place, 110, "curve sd")
    picture.legend(160, (8, "c", "link inside a node"), (180, "d", "link between nodes"))
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"two-levels": draw_two_levels, "zero-stages": draw_stages, "fsdp-step": draw_fsdp}
