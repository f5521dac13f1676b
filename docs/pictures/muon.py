"""The picture of learning rates and widths in module 9's lesson on Muon."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas

LOSSES = {  # of a run of 9.7 on CPUs, 48 steps, for rates from 2^-10 to 2^-6; a test trains some of them again
    "standard": {32: (3.14, 1.94, 0.87, 0.56, 0.58), 64: (1.52, 0.6, 0.56, 0.58, 0.61), 128: (0.53, 0.54, 0.56, 0.59, 0.63)},
    "muP": {32: (3.14, 1.94, 0.87, 0.56, 0.58), 64: (3.0, 1.69, 0.66, 0.54, 0.57), 128: (2.73, 1.34, 0.55, 0.52, 0.55)},
}


def draw_valleys() -> Canvas:
    """Draw the loss over the learning rate for three widths, with standard settings and with muP."""
    picture = Canvas(
        "Loss by learning rate and width",
        "With standard settings the lowest loss is at 2^-7 for width 32 and at 2^-10 for width 128. With muP "
        "it is at 2^-7 for both.",
        275,
    )
    for left, (title, curves) in zip((50, 430), LOSSES.items(), strict=True):
        picture.heading(left, 20, title)
        picture.line(left, 200, left + 270, 200)
        for power in range(5):
            picture.note(left + 15 + 60 * power, 218, f"2^{power - 10}", anchor="middle")
        for kind, losses in zip(("sa", "sb", "sc"), curves.values(), strict=True):
            points: list[tuple[float, float]] = [
                (left + 15.0 + 60 * place, 200 - 60 * (loss - 0.4)) for place, loss in enumerate(losses)
            ]
            picture.curve(points, kind)
            best = min(range(5), key=lambda place: losses[place])
            picture.dot(*points[best], kind[1])
        picture.note(left + 135, 238, "learning rate", anchor="middle")
    picture.legend(252, *((50 + 130 * place, "abc"[place], f"width {width}") for place, width in enumerate(LOSSES["muP"])))
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"valleys": draw_valleys}
