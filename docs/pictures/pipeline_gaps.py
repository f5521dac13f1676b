"""The picture of 9.4: the gaps of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from docs.pictures.canvas import Canvas
from docs.pictures.sources import load

pieces, schedules = (load("09-frontier-training", name) for name in ("pieces", "schedules"))


def _draw_clock(
    picture: Canvas, orders: Sequence[Any], stages: int, times: Any, left: float, top: float, scale: float
) -> float:
    """Draw the spans of each rank as boxes, and return the x at which the last one ends."""
    clock = pieces.simulate(orders, stages, times.of)
    for rank, spans in enumerate(clock.spans):
        y = top + rank * 26
        picture.label(8, y + 15, f"rank {rank}")
        for begin, end, (piece,) in spans:
            half = (end - begin) / 2
            parts = [(begin, half, "b"), (begin + half, half, "c")] if piece.kind == "backward" else [(begin, 2 * half, "a")]
            for start, length, colour in parts:
                picture.box(left + start * scale, y, length * scale - 0.6, 22, colour)
    return left + float(clock.end) * scale


def draw_gaps() -> Canvas:
    """Draw 1F1B with the two halves of each backward pass in different colours."""
    picture = Canvas(
        "1F1B, with the two halves of each backward pass",
        "Four ranks and eight micro-batches on a clock. Each forward, each gradient of inputs and each gradient of weights "
        "takes one unit. Rank 0 is busy at the end of the step, after gaps in its middle. Rank 3 is idle for three units at "
        "the beginning and for six at the end. The step takes 33 units, of which 9 are idle on each rank.",
        180,
    )
    right = _draw_clock(picture, schedules.order_1f1b(4, 8), 4, pieces.Times(1, 1, 1), 62, 20, 20)
    picture.line(right, 16, right, 126)
    picture.legend(146, (62, "a", "forward"), (180, "b", "inputs"), (290, "c", "weights"))
    picture.note(62, 172, "33 units: 24 of work on each rank, and 9 without. Only the optimizer waits for the weights.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"gaps-of-1f1b": draw_gaps}
