"""The pictures of module 9's lessons on all-reduces and on experts: who sends what to whom."""

from __future__ import annotations

from docs.pictures.canvas import Canvas


def draw_butterfly() -> Canvas:
    """Draw the exchanges of halving on 8 ranks, with the nearest and with the farthest partner first."""
    picture = Canvas(
        "Two orders of partners on two nodes of four ranks",
        "Eight ranks, 0 to 3 on one node and 4 to 7 on another. Three rounds with a half, a quarter and an eighth of the "
        "tensor. On "
        "the left each rank begins with its neighbour, and only the eighths cross the border of the nodes. On the right each "
        "rank "
        "begins with the rank four places away, and all halves cross.",
        330,
    )
    for left, title, bits in ((20, "nearest partner first", (1, 2, 4)), (400, "farthest partner first", (4, 2, 1))):
        picture.heading(left, 20, title)
        for rank in range(8):
            picture.label(left, 62 + 30 * rank, str(rank))
            for column in range(4):
                picture.dot(left + 24 + column * 100, 58 + 30 * rank, "c")
        for column, (bit, share) in enumerate(zip(bits, ("1/2", "1/4", "1/8"), strict=True)):
            picture.note(left + 74 + column * 100, 44, f"{share} each", anchor="middle")
            for rank in range(8):
                kind = "curve sd" if rank // 4 != (rank ^ bit) // 4 else "line"
                x = left + 24 + column * 100
                picture.line(x + 6, 58 + 30 * rank, x + 94, 58 + 30 * (rank ^ bit), kind)
        picture.line(left, 163, left + 330, 163, "grid")
    picture.note(380, 318, "red: between the nodes; what crosses is 8 × 1/8 on the left, 8 × 1/2 on the right", anchor="middle")
    return picture


def draw_levels() -> Canvas:
    """Draw the three phases of an all-reduce on two levels, with two nodes of four GPUs."""
    picture = Canvas(
        "An all-reduce on two levels",
        "Two nodes of four GPUs. In the first phase the GPUs of a node add up, and each has the sum of its node for a "
        "quarter of the "
        "tensor. In the second, GPUs with the same quarter on both nodes exchange it over the network. In the third, the GPUs "
        "of a node pass the finished quarters on.",
        256,
    )
    phases = ((16, "1  inside: sums of a node"), (270, "2  network: each its own chunk"), (524, "3  inside: finished chunks"))
    for left, title in phases:
        picture.heading(left, 20, title)
        for node in range(2):
            top = 46 + 104 * node
            picture.note(left + (216 if node and left == phases[1][0] else 0), top - 6, f"node {node}")
            for gpu in range(4):
                picture.box(left + gpu * 54, top, 46, 24, "abce"[gpu], f"GPU {gpu}")
            if left != phases[1][0]:
                for gpu in range(3):
                    picture.line(left + 24 + gpu * 54, top + 34, left + 72 + gpu * 54, top + 34, arrow=True)
        if left == phases[1][0]:
            for gpu in range(4):
                x = left + gpu * 54 + 20
                picture.line(x, 72, x, 148, "curve sd", arrow=True)
                picture.line(x + 8, 148, x + 8, 72, "curve sd", arrow=True)
    picture.note(
        380, 212, "A colour is a quarter of the tensor. Only a quarter of each GPU crosses, and all four cards", anchor="middle"
    )
    picture.note(380, 230, "(or the four streams through one card) are used at the same time.", anchor="middle")
    return picture


def draw_pieces() -> Canvas:
    """Draw when a tree works on which piece, whole and in four pieces."""
    picture = Canvas(
        "A tree, whole and in pieces",
        "A binomial tree of 8 ranks has three levels up and three down. Sent whole, one level works at a time and the others "
        "wait. "
        "In four pieces, level two works on piece one while level one works on piece two.",
        236,
    )
    for left, title, pieces in ((20, "whole: 6 long rounds", 1), (392, "4 pieces: 9 short rounds", 4)):
        picture.heading(left, 20, title)
        width = 260 / 6 if pieces == 1 else 260 / 24
        for level in range(6):
            picture.label(left, 54 + 28 * level, f"{'up' if level < 3 else 'down'} {level % 3 + 1}")
            for piece in range(pieces):
                x = left + 56 + (level + piece) * width
                picture.box(x, 40 + 28 * level, width - 1, 20, "abce"[piece])
    picture.note(
        380, 224, "Time goes to the right. A colour is a piece; a short round still pays a whole latency.", anchor="middle"
    )
    return picture


def draw_journey() -> Canvas:
    """Draw the rows of two ranks through dispatch, experts and combine."""
    picture = Canvas(
        "The way of six rows through two ranks with two experts each",
        "Rank 0 has three pairs for experts 0, 2 and 3, rank 1 for experts 0, 1 and 2. Sorted by expert, the exchange can cut "
        "them by rank. Rank 0 gets rows for 0 from itself, and for 0 and 1 from rank 1: they are grouped by expert, "
        "computed, put back "
        "into the order of arrival, and sent home.",
        262,
    )
    columns = ((16, "sorted by expert"), (176, "as they arrive"), (336, "grouped"), (496, "put back"), (636, "home again"))
    for left, title in columns:
        picture.heading(left, 20, title)
    rows = (
        ((("e0", "a"), ("e2", "c"), ("e3", "e")), (("e0", "a"), ("e1", "b"), ("e2", "c"))),
        ((("e0", "a"), ("e0", "a"), ("e1", "b")), (("e2", "c"), ("e3", "e"), ("e2", "c"))),
        ((("e0", "a"), ("e0", "a"), ("e1", "b")), (("e2", "c"), ("e2", "c"), ("e3", "e"))),
        ((("e0", "a"), ("e0", "a"), ("e1", "b")), (("e2", "c"), ("e3", "e"), ("e2", "c"))),
        ((("e0", "a"), ("e2", "c"), ("e3", "e")), (("e0", "a"), ("e1", "b"), ("e2", "c"))),
    )
    origins = (None, ((0, 1, 1), (0, 0, 1)), ((0, 1, 1), (0, 1, 0)), ((0, 1, 1), (0, 0, 1)), None)
    for (left, _), ranks, sources in zip(columns, rows, origins, strict=True):
        for rank, boxes in enumerate(ranks):
            top = 50 + 98 * rank
            picture.note(left, top - 6, f"rank {rank}")
            for place, (words, kind) in enumerate(boxes):
                picture.box(left, top + 24 * place, 60, 20, kind, words)
                if sources:
                    picture.note(left + 66, top + 15 + 24 * place, f"from {sources[rank][place]}")
    picture.note(
        380,
        250,
        "On rank 1 the rows arrive as e2, e3 from rank 0 and e2 from rank 1: not in the order of experts",
        anchor="middle",
    )
    return picture


def draw_capacity() -> Canvas:
    """Draw the boxes of four experts with room for three rows each."""
    picture = Canvas(
        "Boxes with room for three rows",
        "Four experts with 5, 3, 3 and 1 rows and boxes with room for three. The first expert drops two rows; the last has two "
        "empty places, which are sent all the same. Without boxes, 5, 3, 3 and 1 rows are sent.",
        210,
    )
    for left, title, room in ((20, "capacity factor 1: twelve places, two rows dropped", 3), (430, "without capacity", 0)):
        picture.heading(left, 20, title)
        for expert, count in enumerate((5, 3, 3, 1)):
            top = 40 + 34 * expert
            picture.label(left, top + 16, f"expert {expert}")
            for place in range(max(count, room)):
                kind = "empty" if place >= count else "d" if room and place >= room else "a"
                picture.box(left + 66 + place * 40, top, 34, 22, kind)
    picture.legend(186, (20, "a", "a row"), (120, "d", "dropped"), (230, "empty", "empty, and sent"))
    return picture


PICTURES = {"butterfly": draw_butterfly, "two-levels": draw_levels, "tree-in-pieces": draw_pieces, "expert-rows": draw_journey,
            "capacity": draw_capacity}  # fmt: skip
