"""The pictures of module 9's lesson on context parallelism: a merge, a ring, the triangle of a causal mask, and Ulysses."""

from __future__ import annotations

from docs.pictures.canvas import Canvas

RANKS = 4
KINDS = ("a", "b", "c", "e")


def draw_merge() -> Canvas:
    """Draw one row of scores in two halves, each with its own result and the logarithm of its sum."""
    picture = Canvas(
        "One query, two sets of keys",
        "The scores of one query over eight keys. The first four have the logsumexp 2.0 and one result, the other four the "
        "logsumexp 3.0 and another. Together they have the logsumexp 3.3, of which the first set has a share of 27 % and the "
        "second 73 %.",
        168,
    )
    for key in range(8):
        picture.box(96 + 60 * key + (12 if key > 3 else 0), 16, 54, 24, "a" if key < 4 else "c", f"key {key}")
    picture.label(8, 33, "one query")
    for left, kind, words in ((96, "a", "result A, lse 2.0"), (348, "c", "result B, lse 3.0")):
        picture.box(left, 62, 234, 26, kind, words)
        picture.line(left + 117, 42, left + 117, 60, arrow=True)
        picture.line(left + 117, 90, 339, 114, arrow=True)
    picture.box(199, 118, 280, 28, "empty", "share of A · A + share of B · B, lse 3.3")
    picture.note(490, 136, "shares 27 % and 73 %")
    return picture


def draw_ring() -> Canvas:
    """Draw which keys each of four ranks holds in each step of a ring."""
    picture = Canvas(
        "Keys travel round a ring of 4 ranks",
        "Four steps. Queries stay on their rank. In step 0 each rank holds its own keys, and after each step it sends them to "
        "the next rank. After step 3 each rank has seen the keys of all ranks, after 3 hops.",
        196,
    )
    for step in range(RANKS):
        left = 90 + 168 * step
        picture.heading(left, 20, f"step {step}")
        for rank in range(RANKS):
            y = 34 + 34 * rank
            picture.box(left, y, 36, 26, KINDS[rank], f"q {rank}")
            held = (rank - step) % RANKS
            picture.box(left + 40, y, 36, 26, KINDS[held], f"k {held}")
            if step < RANKS - 1:
                picture.line(left + 80, y + 13, left + 164, y + (47 if rank < RANKS - 1 else -89), arrow=True)
    for rank in range(RANKS):
        picture.label(8, 51 + 34 * rank, f"rank {rank}")
    picture.note(90, 188, "q: queries of a rank, which stay. k: keys and values of a rank, which move.")
    return picture


def draw_triangle() -> Canvas:
    """Draw the square of queries and keys under a causal mask, with contiguous and with striped shares."""
    picture = Canvas(
        "Who computes which pairs under a causal mask",
        "Two squares of 16 queries and 16 keys, of which the lower triangle counts. With contiguous shares, rank 0 has the "
        "small tip and rank 3 the broad base. With striped shares, every fourth row belongs to a rank.",
        250,
    )
    for place, title in enumerate(("contiguous shares", "striped shares")):
        left = 60 + 360 * place
        picture.heading(left, 20, title)
        for query in range(16):
            rank = query // 4 if place == 0 else query % 4
            for key in range(16):
                x, y = left + 12 * key, 32 + 12 * query
                picture.box(x, y, 11, 11, KINDS[rank] if key <= query else "empty")
    picture.legend(230, *((60 + 100 * rank, KINDS[rank], f"rank {rank}") for rank in range(RANKS)))
    return picture


def draw_exchange() -> Canvas:
    """Draw what each of four ranks holds before and after an exchange of tokens for heads."""
    picture = Canvas(
        "Tokens for heads",
        "Two grids of 4 heads and 4 pieces of the sequence. Before the exchange, each rank holds one piece of the tokens of "
        "all heads, a column. After it, each rank holds all tokens of one head, a row.",
        190,
    )
    for place, title in enumerate(("before: all heads of some tokens", "after: all tokens of some heads")):
        left = 100 + 360 * place
        picture.heading(left, 20, title)
        for head in range(RANKS):
            for piece in range(RANKS):
                picture.box(left + 52 * piece, 32 + 30 * head, 48, 26, KINDS[piece if place == 0 else head])
            picture.note(left - 60, 50 + 30 * head, f"head {head}")
        picture.note(left, 166, "tokens →")
    picture.line(330, 92, 396, 92, arrow=True)
    picture.legend(172, *((220 + 90 * rank, KINDS[rank], f"rank {rank}") for rank in range(RANKS)))
    return picture


PICTURES = {
    "two-softmaxes": draw_merge,
    "ring-of-keys": draw_ring,
    "causal-shares": draw_triangle,
    "tokens-for-heads": draw_exchange,
}
