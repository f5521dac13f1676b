"""The picture of module 9's lesson on formats: the bits of each."""

from __future__ import annotations

from docs.pictures.canvas import Canvas

FORMATS = (("float32", 8, 23), ("bfloat16", 8, 7), ("float16", 5, 10), ("E5M2", 5, 2), ("E4M3", 4, 3), ("E2M1", 2, 1))


def draw_bits() -> Canvas:
    """Draw the bits of six formats, one box for each bit."""
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


PICTURES = {"bits-of-formats": draw_bits}
