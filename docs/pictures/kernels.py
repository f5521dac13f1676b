"""The picture of module 5 about attention: the tiles that a causal attention loads."""

from __future__ import annotations

from docs.pictures.canvas import Canvas


def draw_attention(blocks: int = 8) -> Canvas:
    """Draw the matrix of scores in tiles, as the programs of a causal attention go through it."""
    loaded = blocks * (blocks + 1) // 2
    share = 100 * loaded / blocks**2
    picture = Canvas(
        "Attention in tiles, causal",
        f"A matrix of {blocks} by {blocks} tiles of scores. Each row of tiles is one program: it keeps its queries, goes from "
        "left to right over the keys, and ends at the diagonal. Tiles on the diagonal are masked, and tiles above the "
        f"diagonal are skipped: {loaded} of {blocks**2} tiles are loaded, or {share:.0f} %. Between two tiles a program keeps "
        "three things for each query: the highest score, the sum of the weights, and the weighted values.",
        330,
    )
    left, top, cell = 96, 48, 30
    picture.note(left, 34, "keys: k and v, from left to right")
    for row in range(blocks):
        picture.note(left - 8, top + row * cell + 19, f"program {row}", anchor="end")
        for column in range(blocks):
            kind = "a" if column < row else "b" if column == row else "empty"
            picture.box(left + column * cell, top + row * cell, cell - 3, cell - 3, kind)
    picture.label(left, top + blocks * cell + 22, f"{loaded} of {blocks**2} tiles are loaded: {share:.0f} %")
    x, y = 400, 66
    for kind, words in (("a", "whole tile"), ("b", "on the diagonal: later keys at -inf"), ("empty", "never loaded")):
        picture.box(x, y - 12, 16, 16, kind)
        picture.label(x + 26, y, words)
        y += 26
    picture.heading(x, y + 20, "kept for each query between two tiles")
    for number, words in enumerate(("the highest score so far", "the sum of the weights", "the weighted values: d numbers")):
        picture.label(x, y + 44 + 22 * number, words)
    picture.note(x, y + 124, "when the highest rises from a to b,")
    picture.note(x, y + 142, "the other two are multiplied by exp(a - b)")
    return picture


PICTURES = {"attention": draw_attention}
