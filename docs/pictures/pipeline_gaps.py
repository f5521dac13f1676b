"""The pictures of 9.4: what a backward pass consists of, and the gaps of a pipeline."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from docs.pictures.canvas import Canvas
from gpucourse.course.locate import find_course


def _load(name: str) -> Any:
    """Return a file of the exercises as a module."""
    exercises = find_course({}).exercises
    places = [str(exercises / "09-frontier-training"), str(exercises / "shared")]
    sys.path[:0] = places
    try:
        return importlib.import_module(name)
    finally:
        for place in places:
            sys.path.remove(place)


def draw_products() -> Canvas:
    """Draw the two products of a backward pass, and who waits for each."""
    picture = Canvas(
        "The two products of a backward pass",
        "A layer receives x and sends y = x times W transposed. In the backward pass it receives the gradient g of y. The "
        "product g times W is the gradient of x, and the previous stage waits for it. The product of g transposed and x is "
        "the gradient of W, and no other stage waits for it.",
        190,
    )
    picture.box(300, 20, 160, 36, "a", "y = x Wᵀ")
    picture.line(120, 38, 298, 38, arrow=True)
    picture.line(462, 38, 640, 38, arrow=True)
    picture.note(130, 30, "x, from the stage before")
    picture.note(480, 30, "y, to the stage after")
    picture.box(300, 78, 160, 36, "b", "inputs: g W")
    picture.line(640, 96, 462, 96, arrow=True)
    picture.line(298, 96, 120, 96, arrow=True)
    picture.note(480, 88, "g, from the stage after")
    picture.note(130, 88, "awaited by the stage before")
    picture.box(300, 136, 160, 36, "c", "weights: gᵀ x")
    picture.line(380, 114, 380, 134, arrow=True)
    picture.note(480, 158, "awaited by the optimizer alone")
    return picture


def _draw_clock(
    picture: Canvas, orders: Sequence[Any], stages: int, times: Any, left: float, top: float, scale: float
) -> float:
    """Draw the spans of each rank as boxes, and return the x at which the last one ends."""
    clock = _load("pieces").simulate(orders, stages, times.of)
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
    pieces, schedules = _load("pieces"), _load("schedules")
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


PICTURES: dict[str, Callable[[], Canvas]] = {
    "two-products": draw_products,
    "gaps-of-1f1b": draw_gaps,
}
