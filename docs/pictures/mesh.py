"""The pictures of module 6's meshes: what each rank holds of a model cut three ways, and how a mesh lies on nodes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from docs.pictures.canvas import Canvas

SIZES = {"dp": 2, "pp": 2, "tp": 2}
LAYERS, WIDTH, LENGTH, BATCH = 4, 64, 32, 16  # the local defaults of 6.3
ACTIVATIONS = 4 * BATCH // SIZES["dp"] * LENGTH * WIDTH  # bytes of a copy's whole share
Place = dict[str, int]


def count_places(order: Sequence[str]) -> list[Place]:
    """Return the coordinates of each rank, where the last dimension of `order` varies fastest."""
    return [dict(zip(order, at, strict=True)) for at in itertools.product(*(range(SIZES[name]) for name in order))]


def find_next(places: Sequence[Place], rank: int, dimension: str) -> int:
    """Return the other rank of its group of two."""
    wanted = places[rank] | {dimension: 1 - places[rank][dimension]}
    return places.index(wanted)


def draw_three_cuts() -> Canvas:
    """Draw a model of four layers as two copies, each in two stages of two slices."""
    places = count_places(("pp", "dp", "tp"))
    picture = Canvas(
        "A model cut in three ways",
        f"A model of {LAYERS} layers, twice: each is one copy, with sequences of its own. A line across cuts a copy into two "
        "stages, layers 0 and 1 above, 2 and 3 below. A line from top to bottom cuts each layer into two slices. Each of the "
        "eight pieces is one rank's. Slices of a stage sum activations in every layer, stages hand activations to the next "
        "one, and the same piece of both copies averages its gradient.",
        306,
    )
    for copy in range(SIZES["dp"]):
        left = 60 + copy * 370
        picture.heading(left + 140, 24, f"copy {copy}", anchor="middle")
        for rank, place in enumerate(places):
            if place["dp"] != copy:
                continue
            x, y = left + place["tp"] * 144, 38 + place["pp"] * 118
            kind = "ab"[place["tp"]]
            picture.box(x, y, 136, 46, kind, f"rank {rank}: layer {2 * place['pp']}")
            picture.box(x, y + 50, 136, 46, kind, f"rank {rank}: layer {2 * place['pp'] + 1}")
        picture.note(left + 68, 268, "slice 0", anchor="middle")
        picture.note(left + 212, 268, "slice 1", anchor="middle")
        picture.line(left + 68, 135, left + 68, 154, arrow=True)
        picture.line(left + 212, 135, left + 212, 154, arrow=True)
    picture.note(6, 90, "stage 0")
    picture.note(6, 208, "stage 1")
    picture.line(344, 90, 426, 90, arrow=True)
    picture.line(426, 100, 344, 100, arrow=True)
    picture.note(385, 82, "gradients", anchor="middle")
    words = "Side by side: slices sum 4 times per layer. Downwards: activations. Between copies: gradients, once per step."
    picture.label(8, 296, words)
    return picture


def draw_mesh_on_nodes() -> Canvas:
    """Draw the same eight ranks on two nodes in two orders, with the links that cross and their bytes."""
    orders = (("tp", "pp", "dp"), ("pp", "dp", "tp"))
    tp_bytes = 4 * (LAYERS // SIZES["pp"]) * ACTIVATIONS
    across = {"tp": 8 * tp_bytes, "pp": 4 * 2 * ACTIVATIONS}
    picture = Canvas(
        "One mesh on two nodes, in two orders",
        "Two charts of two nodes with four ranks each. On the left tp varies slowest: the two slices of every stage lie on "
        f"different nodes, and all {across['tp']:,} bytes of their sums cross in a step. On the right tp varies fastest and "
        f"pp slowest: slices are neighbours on a node, and only stages talk between nodes, {across['pp']:,} bytes in a step.",
        298,
    )
    for chart, order in enumerate(orders):
        places, left = count_places(order), 4 + chart * 384
        picture.heading(left, 20, f"{order[0]} slowest: ORDER = {', '.join(order)}")
        slowest = order[0]
        for rank, place in enumerate(places):
            x, y = left + rank // 4 * 228, 52 + rank % 4 * 48
            if rank % 4 == 0:
                picture.note(x + 70, 44, f"node {rank // 4}", anchor="middle")
            words = f"{rank}: copy {place['dp']}, stage {place['pp']}"
            picture.box(x, y, 140, 36, "ab"[place["tp"]], words)
            other = find_next(places, rank, slowest)
            if other // 4 != rank // 4 and rank < other:
                picture.line(x + 143, y + 14, x + 224, y + 14, arrow=True)
                picture.line(x + 224, y + 24, x + 143, y + 24, arrow=True)
            partner = find_next(places, rank, "tp")
            if partner == rank + 1 and partner // 4 == rank // 4:
                picture.line(x + 70, y + 37, x + 70, y + 47)
        picture.label(left, 258, f"between nodes: {across[slowest]:,} bytes per step, all of {slowest}")
    picture.legend(274, (8, "a", "slice 0 of its layers"), (200, "b", "slice 1"))
    picture.note(388, 286, "A short line joins slices on one node.")
    return picture


PICTURES = {"three-cuts": draw_three_cuts, "mesh-on-nodes": draw_mesh_on_nodes}
