"""The pictures of module 8's introduction and of its lessons on pages and on the scheduler."""

from __future__ import annotations

from docs.pictures.canvas import Canvas


def draw_engine() -> Canvas:
    """Draw the way of a request through an engine, with the exercise that teaches each place."""
    picture = Canvas(
        "Where the eight mechanisms are in an engine",
        "A request passes a router (8.8), waits in a queue, and is planned by the scheduler (8.3), which asks the page "
        "allocator (8.2) and the prefix cache (8.4) for memory. The model computes a step (8.1): with weights of 4 or 8 bits "
        "(8.6), on several ranks (8.7), with drafts of several tokens (8.5). Then the scheduler plans the next step.",
        196,
    )
    for x, width, kind, words, exercise in (
        (8, 100, "e", "router", "8.8"),
        (138, 100, "empty", "queue", ""),
        (268, 130, "a", "scheduler", "8.3"),
        (428, 324, "c", "one step of the model", "8.1"),
    ):
        picture.box(x, 40, width, 36, kind, words)
        picture.note(x + width / 2, 32, exercise, anchor="middle")
    for x in (108, 238, 398):
        picture.line(x, 58, x + 29, 58, arrow=True)
    for x, words, exercise in ((428, "4 or 8 bits", "8.6"), (538, "several ranks", "8.7"), (648, "drafts", "8.5")):
        picture.box(x, 100, 104, 30, "empty", words)
        picture.line(x + 52, 100, x + 52, 78)
        picture.note(x + 52, 144, exercise, anchor="middle")
    for x, words, exercise in ((208, "pages", "8.2"), (318, "prefix cache", "8.4")):
        picture.box(x, 100, 100, 30, "b", words)
        picture.line(x + 50, 100, 333, 78)
        picture.note(x + 50, 144, exercise, anchor="middle")
    picture.line(590, 160, 313, 160)
    picture.line(590, 160, 590, 150)
    picture.line(313, 160, 313, 79, arrow=True)
    picture.note(461, 176, "after every step: a token for each request that has computed everything", anchor="middle")
    return picture


def draw_pages() -> Canvas:
    """Draw two tables over one pool before and after the first answer writes."""
    picture = Canvas(
        "Two answers over one prompt, before and after a write",
        "A pool of 8 pages with 4 places each. Before: answers a and b both have the table 5, 2. Page 5 is full and has two "
        "users; page 2 holds two tokens and has two users. Then a writes a token: page 2 is copied to page 6, and a has the "
        "table 5, 6. Page 5 still has two users, pages 2 and 6 have one each. When b writes, nothing is copied.",
        312,
    )
    for top, title, tables, pages in (
        (20, "after the fork", {"a": (5, 2), "b": (5, 2)}, {5: (4, 2), 2: (2, 2)}),
        (170, "a has written a token", {"a": (5, 6), "b": (5, 2)}, {5: (4, 2), 2: (2, 1), 6: (3, 1)}),
    ):
        picture.heading(8, top, title)
        for row, (name, table) in enumerate(tables.items()):
            y = top + 22 + row * 34
            picture.label(8, y + 16, f"table of {name}")
            for place, page in enumerate(table):
                picture.box(92 + place * 36, y, 32, 24, "a" if name == "a" else "e", str(page))
        left = 236
        for page in range(8):
            x = left + page * 64
            tokens, users = pages.get(page, (0, 0))
            for place in range(4):
                new = page == 6 and place == 2
                picture.box(x + place * 14, top + 32, 12, 24, ("a" if new else "c") if place < tokens else "empty")
            picture.note(x + 27, top + 24, f"page {page}", anchor="middle")
            if users:
                picture.label(x + 27, top + 74, f"{users} user{'s' * (users > 1)}", anchor="middle")
    picture.line(236 + 2 * 64 + 27, 262, 236 + 6 * 64 + 20, 262, arrow=True)
    picture.line(236 + 2 * 64 + 27, 262, 236 + 2 * 64 + 27, 250)
    picture.note(236 + 4 * 64 + 20, 278, "copied before a writes", anchor="middle")
    picture.legend(
        292, (8, "c", "tokens of the prompt"), (180, "a", "token of a"), (300, "empty", "empty, or of another request")
    )
    return picture


def draw_schedules() -> Canvas:
    """Draw the steps of four requests: in a static batch, and decided before every step with a prompt in pieces."""
    picture = Canvas(
        "Static batches, and a decision before every step",
        "Time runs to the right in steps. Above, a static batch: requests A, B and C begin together; C and B end early and "
        "their rows stay empty until A has ended; only then D begins. Below, a decision before every step: when C has ended, "
        "D joins, and its long prompt is computed in three pieces, while A and B get a token in each of these steps.",
        330,
    )
    left, step = 92.0, 46.0

    def draw_row(top: float, name: str, cells: str) -> None:
        picture.label(8, top + 17, f"request {name}")
        for number, cell in enumerate(cells):
            kind = {"p": "b", "t": "c", "-": "empty", " ": ""}[cell]
            if kind:
                picture.box(left + number * step, top, step - 4, 24, kind, {"p": "prompt", "t": "token"}.get(cell, ""))

    picture.heading(8, 20, "static batch: D waits until the longest answer is complete")
    for row, (name, cells) in enumerate((("A", "ptttttttt"), ("B", "ptttt----"), ("C", "ptt------"), ("D", "         pppt"))):
        draw_row(30 + row * 29, name, cells)
    picture.heading(8, 176, "a decision before every step: D joins as soon as there is room, in pieces")
    for row, (name, cells) in enumerate((("A", "ptttttttt"), ("B", "ptttt"), ("C", "ptt"), ("D", "   pppttttttt"))):
        draw_row(186 + row * 29, name, cells)
    picture.legend(
        308, (8, "b", "prompt, or a piece of it"), (200, "c", "one token of the answer"), (380, "empty", "empty row")
    )
    return picture


PICTURES = {"engine": draw_engine, "pages": draw_pages, "schedules": draw_schedules}
