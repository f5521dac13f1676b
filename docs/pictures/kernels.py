"""The pictures of module 5's fused kernels: what travels between kernels and main memory."""

from __future__ import annotations

from docs.pictures.canvas import Canvas


def draw_fused() -> Canvas:
    """Layer norm and dropout as two kernels and as one, with the bytes of every arrow."""
    kernels = {"layer norm": (["x"], ["norm"]), "dropout": (["norm"], ["y", "mask"])}
    sizes = {"x": 1.0, "norm": 1.0, "y": 1.0, "mask": 0.25}
    separate = sum(sizes[name] for reads, writes in kernels.values() for name in reads + writes)
    fused = sizes["x"] + sizes["y"]
    picture = Canvas(
        "The bytes that two kernels move, and one",
        "Two kernels: layer norm reads x and writes its result to main memory, dropout reads that and writes y and a mask. "
        f"They move {separate:g} times the bytes of x. One kernel reads x and writes y: {fused:g} times the bytes of x.",
        220,
    )
    low, high, tall = 150, 44, 34
    places = {"x": (16, 80), "norm": (146, 80), "y": (276, 80), "mask": (376, 50)}
    for name, (x, wide) in places.items():
        picture.box(x, low, wide, tall, "empty", f"{name}: S" if name != "mask" else "S/4")
    for at, (name, (reads, writes)) in enumerate(kernels.items()):
        x = 81 + at * 130
        picture.box(x, high, 80, tall, "ab"[at], name)
        for tensor in reads:
            left, wide = places[tensor]
            picture.line(left + wide / 2, low - 2, x + 14, high + tall + 4, arrow=True)
        for tensor in writes:
            left, wide = places[tensor]
            picture.line(x + 66, high + tall + 2, left + wide / 2, low - 4, arrow=True)
    picture.note(401, 203, "mask", anchor="middle")
    picture.heading(16, 26, f"two kernels: {separate:g} S")
    picture.heading(500, 26, f"one kernel: {fused:g} S")
    picture.box(500, low, 80, tall, "empty", "x: S")
    picture.box(650, low, 80, tall, "empty", "y: S")
    picture.box(545, high, 140, tall, "c", "norm and dropout")
    picture.line(540, low - 2, 575, high + tall + 4, arrow=True)
    picture.line(655, high + tall + 2, 690, low - 4, arrow=True)
    picture.note(16, 203, "main memory")
    picture.note(500, 203, "main memory")
    picture.line(470, 16, 470, 206, "grid")
    return picture


def draw_attention(blocks: int = 8) -> Canvas:
    """Draw the matrix of scores in tiles, as the programs of a causal attention go through it."""
    loaded = blocks * (blocks + 1) // 2
    share = 100 * loaded / blocks**2
    picture = Canvas(
        "Attention in tiles, causal",
        f"A matrix of {blocks} by {blocks} tiles of scores. Each row of tiles is one program: it keeps its queries, goes from "
        "left to right over the keys, and ends at the diagonal. Tiles on the diagonal are masked, those above it are never "
        f"loaded: {loaded} of {blocks**2} tiles are, {share:.0f}%. Between two tiles a program keeps three things for each "
        "query: the highest score, the sum of the weights, and the weighted values.",
        330,
    )
    left, top, cell = 96, 48, 30
    picture.note(left, 34, "keys: k and v, from left to right")
    for row in range(blocks):
        picture.note(left - 8, top + row * cell + 19, f"program {row}", anchor="end")
        for column in range(blocks):
            kind = "a" if column < row else "b" if column == row else "empty"
            picture.box(left + column * cell, top + row * cell, cell - 3, cell - 3, kind)
    picture.label(left, top + blocks * cell + 22, f"{loaded} of {blocks**2} tiles are loaded: {share:.0f}%")
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


PICTURES = {"fused": draw_fused, "attention": draw_attention}
