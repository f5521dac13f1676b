"""The picture of module 8 about the data that attention keeps for each token."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas

HEADS, DIM, LATENT, ROPE = 32, 128, 512, 64
FORMS = (("32 key heads", 32), ("8 key heads", 8), ("1 key head", 1), ("one latent", 0))


def count_numbers(kv_heads: int) -> int:
    """Return how many numbers one layer keeps for a token: keys and values or, without key heads, a latent and a position."""
    return 2 * kv_heads * DIM if kv_heads else LATENT + ROPE


def draw_heads() -> Canvas:
    """Draw the query heads of a layer, and the data that four forms of attention keep for them."""
    picture = Canvas(
        "What one layer keeps of a token",
        "Four rows, each with 32 query heads above what is kept for them. With 32 key heads, each query head has its own key "
        "and value: 8,192 numbers. With 8 key heads, four query heads share one: 2,048 numbers. With one key head, all share "
        "it: 256 numbers. With a latent, all heads read one vector of 512 numbers and 64 numbers of the position: 576.",
        330,
    )
    left, step = 130.0, 14.0
    for row, (name, kv_heads) in enumerate(FORMS):
        top = 14 + row * 74
        picture.heading(8, top + 22, name)
        for head in range(HEADS):
            colour = "abcde"[head * (kv_heads or 1) // HEADS % 5]
            picture.box(left + head * step, top, step - 3, 14, colour)
        for head in range(kv_heads or 1):
            width = HEADS * step / (kv_heads or 1)
            for place in range(2):
                kind = "abcde"[head % 5]
                share = width if kv_heads else width * (LATENT, ROPE)[place] / (LATENT + ROPE)
                start = left + head * width + (place * LATENT / (LATENT + ROPE) * width if not kv_heads else 0)
                words = ("latent 512", "64")[place] if not kv_heads else ("key", "value")[place] if kv_heads == 1 else ""
                picture.box(start, top + 20 + (16 * place if kv_heads else 0), share - 3, 14, kind, words)
        numbers = count_numbers(kv_heads)
        picture.label(left + HEADS * step + 8, top + 26, f"{numbers:,} numbers")
        picture.note(left + HEADS * step + 8, top + 42, f"{numbers / count_numbers(32):.0%} of 32")
    picture.note(8, 322, "Upper row: 32 query heads, in the colour of what they read. Lower rows: what is kept of each token.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"heads": draw_heads}
