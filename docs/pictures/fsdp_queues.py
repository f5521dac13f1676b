"""The picture of 9.6: the three queues of a step."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas


def draw_queues() -> Canvas:
    """Draw the forward and backward passes of four equal layers whose messages take two units and a backward four."""
    picture = Canvas(
        "Three queues of a step of FSDP",
        "Time goes from left to right. In the first row, the gathers of four layers follow one another, first for forward, "
        "then for backward in the opposite order. In the second row, each layer computes when it is whole. In the third row, "
        "a reduce begins after each backward. Nothing is computed during the first gather and the last reduce.",
        208,
    )
    left, scale, rows = 84, 20, {"gather": 36, "compute": 76, "reduce": 116}
    for name, y in rows.items():
        picture.label(8, y + 17, name)
    for layer in range(4):
        picture.box(left + 2 * layer * scale, rows["gather"], 2 * scale - 2, 28, "a", str(layer))
        picture.box(left + (2 + 3 * layer) * scale, rows["compute"], 3 * scale - 2, 28, "b", str(layer))
    begin = 14
    for place, layer in enumerate((3, 2, 1, 0)):
        start = begin + 4 * place
        gather = 12 if place == 0 else start - 4
        picture.box(left + gather * scale, rows["gather"], 2 * scale - 2, 28, "a", str(layer))
        picture.box(left + start * scale, rows["compute"], 4 * scale - 2, 28, "c", str(layer))
        picture.box(left + (start + 4) * scale, rows["reduce"], 2 * scale - 2, 28, "e", str(layer))
    for x, words in ((left, "exposed"), (left + 30 * scale, "exposed")):
        picture.note(x, 26, words)
        picture.line(x, 30, x + 2 * scale - 2, 30)
    picture.legend(168, (84, "b", "forward"), (190, "c", "backward"), (310, "a", "gather"), (410, "e", "reduce"))
    picture.note(
        84,
        198,
        "The number is the layer. Each is freed after forward, and gathered again for backward.",
    )
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"three-queues": draw_queues}
