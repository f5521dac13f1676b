"""The pictures of module 9's lesson on formats: bits of formats, scales beside an outlier, and a power of two as a scale."""

from __future__ import annotations

from docs.pictures.canvas import Canvas

FORMATS = (("float32", 8, 23), ("bfloat16", 8, 7), ("float16", 5, 10), ("E5M2", 5, 2), ("E4M3", 4, 3), ("E2M1", 2, 1))


def draw_bits() -> Canvas:
    """Draw the bits of six formats, a box for each."""
    words = ", ".join(f"{name} {exponent} and {mantissa}" for name, exponent, mantissa in FORMATS)
    picture = Canvas(
        "The bits of six formats",
        f"Each format has one bit for the sign, then bits of the exponent and of the mantissa: {words}.",
        224,
    )
    for row, (name, exponent, mantissa) in enumerate(FORMATS):
        y = 16 + 28 * row
        picture.label(8, y + 15, name)
        for bit in range(1 + exponent + mantissa):
            kind = "empty" if bit == 0 else "a" if bit <= exponent else "c"
            picture.box(84 + 20 * bit, y, 18, 22, kind)
    picture.legend(
        196, (84, "empty", "sign"), (170, "a", "exponent: the range"), (350, "c", "mantissa: numbers between powers of two")
    )
    return picture


def draw_shared_scales() -> Canvas:
    """Draw a matrix with an outlier three times: one scale, a scale a row, and a scale for blocks of a row."""
    picture = Canvas(
        "Who shares a scale with an outlier",
        "A matrix of 6 rows and 12 columns, in which column 4 has outliers. With one scale, all numbers have steps that are "
        "too large. With a scale for each row, still all, because each row has an outlier. With a scale for four neighbours of "
        "a row, only the neighbours of the outlier, a third of the numbers.",
        176,
    )
    for place, (title, block) in enumerate((("one scale", 0), ("a scale for each row", 12), ("a scale for 4 neighbours", 4))):
        left = 8 + 252 * place
        picture.heading(left, 20, title)
        for row in range(6):
            for column in range(12):
                shares = block in (0, 12) or column // block == 4 // block
                kind = "d" if column == 4 else "b" if shares else "c"
                gap = 3 * (column // block) if block == 4 else 0
                picture.box(left + 18 * column + gap, 32 + 18 * row, 16, 16, kind)
    picture.legend(
        152,
        (8, "d", "outlier"),
        (110, "b", "rounded in steps for the outlier"),
        (350, "c", "rounded in steps for its own size"),
    )
    return picture


def draw_power_of_two() -> Canvas:
    """Draw a line of quotients: where the largest number of a block ends with each of two rules for its scale."""
    picture = Canvas(
        "The largest number of a block, divided by a power of two",
        "A line from 0 to 512. E4M3 ends at 448. By the rule of the exponent, the largest number of a block is between 256 and "
        "512, and what is above 448 is cut off. By rounding up, it is between 224 and 448, and nothing is cut off.",
        178,
    )

    def x(value: float) -> float:
        return 130 + value * 600 / 512

    for y, words, low, high in ((40, "exponent only", 256, 512), (90, "rounded up", 224, 448)):
        picture.label(8, y + 17, words)
        picture.line(x(0), y + 26, x(512), y + 26)
        picture.box(x(low), y, x(min(high, 448)) - x(low), 24, "c", "the block's largest number")
        if high > 448:
            picture.box(x(448), y, x(high) - x(448), 24, "d", "cut off")
    picture.line(x(448), 24, x(448), 130)
    for value in (0, 128, 224, 256, 384, 448, 512):
        picture.note(x(value), 146, str(value), anchor="middle")
    picture.note(x(448), 18, "largest of E4M3", anchor="middle")
    picture.note(x(256), 168, "quotient of the largest number and the scale", anchor="middle")
    return picture


PICTURES = {"bits-of-formats": draw_bits, "shared-scales": draw_shared_scales, "power-of-two": draw_power_of_two}
