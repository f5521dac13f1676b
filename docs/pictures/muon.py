"""The pictures of module 9's lesson on Muon and on widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from docs.pictures.canvas import Canvas

QUINTIC, FINISH = (3.4445, -4.7750, 2.0315), (2.0, -1.5, 0.5)
SINGULAR_VALUES = [0.46 * 0.82**number for number in range(28)]
"""A gradient's singular values, divided by its norm: the squares add up to less than 1."""
LOSSES = {  # of a run of 9.7 on CPUs, 48 steps, for rates from 2^-10 to 2^-6; a test trains some of them again
    "standard": {32: (3.14, 1.94, 0.87, 0.56, 0.58), 64: (1.52, 0.6, 0.56, 0.58, 0.61), 128: (0.53, 0.54, 0.56, 0.59, 0.63)},
    "muP": {32: (3.14, 1.94, 0.87, 0.56, 0.58), 64: (3.0, 1.69, 0.66, 0.54, 0.57), 128: (2.73, 1.34, 0.55, 0.52, 0.55)},
}


def apply(value: float, plan: Sequence[tuple[float, float, float]]) -> float:
    """Return a singular value after the iterations of a plan."""
    for a, b, c in plan:
        value = a * value + b * value**3 + c * value**5
    return value


def draw_singular_values() -> Canvas:
    """Draw the singular values of a gradient, before and after Muon."""
    picture = Canvas(
        "Singular values of a gradient, before and after",
        "Left: 28 singular values, of which a few are large and most are small. Right: after five iterations "
        "of Muon, nearly all "
        "are between 0.7 and 1.2.",
        230,
    )
    after = [apply(value, [QUINTIC] * 5) for value in SINGULAR_VALUES]
    for left, title, values, kind in ((40, "the gradient", SINGULAR_VALUES, "a"), (420, "after five iterations", after, "c")):
        picture.heading(left, 20, title)
        picture.line(left, 190, left + 300, 190)
        picture.line(left, 190 - 120, left + 300, 190 - 120, "grid")
        picture.note(left - 8, 190 - 116, "1", anchor="end")
        for place, value in enumerate(values):
            picture.box(left + 6 + place * 10.4, 190 - 120 * value, 8, 120 * value, kind)
        picture.note(left + 150, 212, "singular values, the largest first", anchor="middle")
    return picture


def draw_polynomial() -> Canvas:
    """Draw the polynomial applied once, applied five times, and after DeepSeek-V4's ten iterations."""
    picture = Canvas(
        "A polynomial that stretches",
        "Once, the polynomial is steep at 0 and reaches 1.2. After five times, values from 0.02 on are "
        "between 0.7 and 1.2. After "
        "DeepSeek-V4's ten iterations, they are at 1.",
        270,
    )
    left, bottom, width, height = 60, 230, 480, 180

    def place(x: float, y: float) -> tuple[float, float]:
        return left + width * x, bottom - height * y / 1.25

    for y in (0, 0.5, 1):
        picture.line(*place(0, y), *place(1, y), "grid" if y else "line")
        picture.note(left - 8, place(0, y)[1] + 4, f"{y:g}", anchor="end")
    for x in (0, 0.25, 0.5, 0.75, 1):
        picture.note(place(x, 0)[0], bottom + 16, f"{x:g}", anchor="middle")
    picture.note(left + width / 2, bottom + 34, "singular value before", anchor="middle")
    plans = (
        ("once", [QUINTIC], "sa"),
        ("five times", [QUINTIC] * 5, "sb"),
        ("eight and two", [QUINTIC] * 8 + [FINISH] * 2, "sc"),
    )
    for row, (name, plan, kind) in enumerate(plans):
        picture.curve([place(step / 400, apply(step / 400, plan)) for step in range(401)], kind)
        picture.line(570, 60 + 24 * row, 594, 60 + 24 * row, f"curve {kind}")
        picture.label(602, 64 + 24 * row, name)
    return picture


def count_works(layers: int = 2) -> list[tuple[str, int]]:
    """Return the work of each matrix of the exercise's model, in the model's order, in units of w^3."""
    sides = {"qkv": (1, 3), "out": (1, 1), "up": (1, 4), "down": (1, 4)}
    return [(name, 4 * m * m * n + 2 * m**3) for _ in range(layers) for name, (m, n) in sides.items()]


def share(works: Sequence[tuple[str, int]], ranks: int, *, largest_first: bool) -> list[list[tuple[str, int]]]:
    """Return the matrices of each rank: dealt in turn, or the largest first to the rank with the least work."""
    shares: list[list[tuple[str, int]]] = [[] for _ in range(ranks)]
    for place, work in enumerate(sorted(works, key=lambda work: -work[1]) if largest_first else works):
        rank = min(shares, key=lambda its: sum(size for _, size in its)) if largest_first else shares[place % ranks]
        rank.append(work)
    return shares


def draw_owners() -> Canvas:
    """Draw the work of four ranks, dealt in turn and largest first."""
    works = count_works()
    mean = sum(size for _, size in works) / 4
    picture = Canvas(
        "Eight matrices on four ranks",
        "Dealt in turn, the busiest rank has 1.29 times the mean work. Largest first, to the rank with the "
        "least, it has 1.14 times.",
        250,
    )
    for left, title, largest_first in ((40, "dealt in turn", False), (420, "largest first", True)):
        shares = share(works, 4, largest_first=largest_first)
        most = max(sum(size for _, size in its) for its in shares) / mean
        picture.heading(left, 20, f"{title}: {most:.2f} times the mean")
        picture.line(left, 210, left + 300, 210)
        for rank, its in enumerate(shares):
            top = 210.0
            for name, size in its:
                top -= size * 4
                picture.box(left + 10 + 72 * rank, top, 60, size * 4 - 2, "ceb"[len(name) % 3], name)
            picture.note(left + 40 + 72 * rank, 228, f"rank {rank}", anchor="middle")
        picture.line(left, 210 - 4 * mean, left + 300, 210 - 4 * mean, "grid")
        picture.note(left + 304, 214 - 4 * mean, "mean")
    return picture


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


PICTURES: dict[str, Callable[[], Canvas]] = {
    "singular-values": draw_singular_values,
    "polynomial": draw_polynomial,
    "owners": draw_owners,
    "valleys": draw_valleys,
}
