"""The pictures of module 6's lesson on ZeRO: what each rank holds at each stage, and what a step sends."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas

KINDS = (("weights", 4, 3, "a"), ("gradients", 4, 2, "b"), ("moments", 8, 1, "c"))
"""What a rank holds: its bytes per parameter in float32 with AdamW, the stage that divides it, its colour."""

STEPS: dict[int, tuple[tuple[str, str], ...]] = {
    0: (("forward", ""), ("backward", ""), ("all-reduce", "gradients"), ("step", "all weights")),
    1: (("forward", ""), ("backward", ""), ("reduce-scatter", "gradients"), ("step", "own share"), ("all-gather", "weights")),
    3: (
        ("all-gather", "weights"),
        ("forward", ""),
        ("all-gather", "weights"),
        ("backward", ""),
        ("reduce-scatter", "gradients"),
        ("step", "own share"),
    ),
}
"""What a step does in turn at each stage, and of what; stage 2 does what stage 1 does."""

COSTS = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}
"""Collectives in a ring, in shares (n - 1) / n of all parameters."""


def count_bytes(stage: int, ranks: int) -> float:
    """Bytes per parameter that one rank holds of the three kinds."""
    return sum(size / (ranks if stage >= first else 1) for _, size, first, _ in KINDS)


def draw_stages(ranks: int = 4) -> Canvas:
    """Weights, gradients and moments of each rank at the four stages."""
    sums = [count_bytes(stage, ranks) for stage in range(4)]
    picture = Canvas(
        "What a rank holds at each stage of ZeRO",
        f"Four groups of {ranks} rows, one group per stage and one row per rank. At stage 0 each rank holds all weights, all "
        f"gradients and all moments, {sums[0]:g} bytes per parameter. Stage 1 leaves it a quarter of the moments, {sums[1]:g} "
        f"bytes; stage 2 a quarter of the gradients as well, {sums[2]:g} bytes; stage 3 a quarter of everything, {sums[3]:g} "
        "bytes.",
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


def draw_steps() -> Canvas:
    """Draw the collectives of a step at each stage, between what is computed."""
    costs = {stage: sum(COSTS.get(what, 0) for what, _ in steps) for stage, steps in STEPS.items()}
    picture = Canvas(
        "A step at each stage of ZeRO",
        "Three rows of boxes. Stage 0: forward, backward, an all-reduce of the gradients, and the optimizer's step on all "
        "weights. Stages 1 and 2: forward, backward, a reduce-scatter of the gradients, the step on the rank's own share, and "
        "an all-gather of the new weights. Stage 3: an all-gather of weights before forward and again before backward, a "
        f"reduce-scatter of gradients, and the step on its own share. They send {costs[0]}, {costs[1]} and {costs[3]} times "
        "(n - 1) / n of all parameters.",
        262,
    )
    names = {0: "stage 0", 1: "stages 1, 2", 3: "stage 3"}
    for row, (stage, steps) in enumerate(STEPS.items()):
        y, x = 30 + row * 76, 104.0
        picture.heading(8, y + 23, names[stage])
        for what, of in steps:
            wide = 98 if what in COSTS else 82
            picture.box(x, y, wide, 36, "d" if what in COSTS else "a", what)
            picture.note(x + wide / 2, y + 50, of, anchor="middle")
            x += wide + 8
        picture.note(104, y - 8, f"a rank sends {costs[stage]} (n - 1) / n numbers per parameter")
    picture.note(8, 254, "Red: a collective. An all-reduce is a reduce-scatter and an all-gather.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"zero-stages": draw_stages, "zero-steps": draw_steps}
