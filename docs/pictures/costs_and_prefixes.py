"""The pictures of module 8's lessons on costs and prefixes: what a token keeps, chains of keys, and the queue of free pages."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas

HEADS, DIM, LATENT, ROPE = 32, 128, 512, 64
FORMS = (("32 key heads", 32), ("8 key heads", 8), ("1 key head", 1), ("one latent", 0))


def count_numbers(kv_heads: int) -> int:
    """Return the numbers that one layer keeps of a token: keys and values, or without key heads a latent and a position."""
    return 2 * kv_heads * DIM if kv_heads else LATENT + ROPE


def draw_heads() -> Canvas:
    """Draw the query heads of a layer, and what four forms of attention keep for them."""
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


def draw_chain() -> Canvas:
    """Draw the keys of two prompts with the same beginning, each made of the key before it and of one page."""
    picture = Canvas(
        "A chain of keys",
        "Two prompts in pages of four tokens. Each key is made from the key before it and the tokens of its page. The first "
        "two pages are the same, and so are their keys. The third page of the first prompt and the fourth of the second have "
        "the same tokens, but different keys, as other tokens come before them. The last page is not whole, and has no key.",
        226,
    )
    prompts = (
        ("prompt 1", ("You are a", "helpful bot", "What is 2+2", "?"), ("k1", "k2", "k3", "")),
        ("prompt 2", ("You are a", "helpful bot", "Be brief:", "What is 2+2"), ("k1", "k2", "k4", "k5")),
    )
    for row, (name, pages, keys) in enumerate(prompts):
        top = 20 + row * 96
        picture.heading(8, top + 18, name)
        picture.box(92, top + 40, 50, 24, "empty", "salt")
        end = 142.0
        for number, (words, key) in enumerate(zip(pages, keys, strict=True)):
            x = 176 + number * 146
            picture.box(x, top, 124, 26, "c" if number < 2 else "empty", words)
            if key:
                picture.box(x + 37, top + 40, 50, 24, "c" if number < 2 else "ab"[row], key)
                picture.line(end, top + 52, x + 37, top + 52, arrow=True)
                picture.line(x + 62, top + 26, x + 62, top + 40, arrow=True)
                end = x + 87
            else:
                picture.note(x + 62, top + 56, "not whole: no key", anchor="middle")
    picture.note(8, 218, "Green: found by both. k3 and k5 are keys of the same tokens after different beginnings.")
    return picture


def draw_queue() -> Canvas:
    """Draw the queue of free pages before a hit, after it, and after a page was taken."""
    picture = Canvas(
        "The queue of free pages",
        "Three rows. Before: the pages 7, 4, 2, 1 and 0 wait; 2, 1 and 0 belong to a request that has ended, its last page "
        "first, and still have their keys. After a new request has found pages 0 and 1, these have left the queue. After it "
        "has taken a page for new tokens, page 7 has left the front, and its key is forgotten.",
        196,
    )
    rows = (
        ("before", ((7, "k9"), (4, ""), (2, "k3"), (1, "k2"), (0, "k1")), ()),
        ("finds 0 and 1", ((7, "k9"), (4, ""), (2, "k3")), ((0, "k1"), (1, "k2"))),
        ("takes one", ((4, ""), (2, "k3")), ((0, "k1"), (1, "k2"), (7, ""))),
    )
    picture.note(130, 16, "front: taken first")
    picture.note(520, 16, "table of the new request")
    for row, (name, queue, table) in enumerate(rows):
        top = 28 + row * 52
        picture.heading(8, top + 22, name)
        for place, (page, key) in enumerate(queue):
            picture.box(130 + place * 72, top, 62, 34, "b" if key else "empty", f"{page}: {key}" if key else str(page))
        for place, (page, key) in enumerate(table):
            picture.box(520 + place * 72, top, 62, 34, "c" if key else "a", f"{page}: {key}" if key else str(page))
    picture.note(8, 190, "A page keeps its key while it waits. Green: found. Blue: will be computed.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"heads": draw_heads, "chain-of-keys": draw_chain, "free-pages": draw_queue}
