"""Judge a repaired copy of the clock: the two halves of a backward pass together take as long as the whole."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("input gradients take {inputs} and weight gradients {weights}, but a whole backward pass takes {backward}")
}


def judge(part: Part) -> None:
    """Judge the times of single pieces."""
    piece, times = part.function("Piece"), part.function("Times")(1, 2, 5)
    kinds = ("inputs", "weights", "backward")
    inputs, weights, backward = (part.call(times.of, (piece(kind, 0, 0),)) for kind in kinds)
    if (inputs, weights, backward) != (2, 5, 7):
        raise part.wrong("still", inputs=inputs, weights=weights, backward=backward)
    part.note("input and weight gradients together take as long as a whole backward pass")
