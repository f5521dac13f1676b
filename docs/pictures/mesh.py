"""Pictures of module 6 about meshes: how a mesh is placed on nodes, and what a step waits for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from docs.pictures.canvas import Canvas

SIZES = {"dp": 2, "pp": 2, "tp": 2}
LAYERS, WIDTH, LENGTH, BATCH = 4, 64, 32, 16  # the local defaults of 6.3
ACTIVATIONS = 4 * BATCH // SIZES["dp"] * LENGTH * WIDTH  # bytes of a copy's whole share
Place = dict[str, int]


def count_places(order: Sequence[str]) -> list[Place]:
    """Return the coordinates of each rank. The last dimension in `order` varies fastest."""
    return [dict(zip(order, at, strict=True)) for at in itertools.product(*(range(SIZES[name]) for name in order))]


def find_next(places: Sequence[Place], rank: int, dimension: str) -> int:
    """Return the other rank of its group of two."""
    wanted = places[rank] | {dimension: 1 - places[rank][dimension]}
    return places.index(wanted)


def draw_mesh_on_nodes() -> Canvas:
    """Draw the same eight ranks on two nodes in two orders, with the links between the nodes and their bytes."""
    orders = (("tp", "pp", "dp"), ("pp", "dp", "tp"))
    tp_bytes = 4 * (LAYERS // SIZES["pp"]) * ACTIVATIONS
    across = {"tp": 8 * tp_bytes, "pp": 4 * 2 * ACTIVATIONS}
    picture = Canvas(
        "One mesh on two nodes, in two orders",
        "Two charts of two nodes with four ranks each. On the left tp varies slowest: the two slices of every stage lie on "
        f"different nodes, so {across['tp']:,} bytes of their sums cross between nodes in a step. On the right tp varies "
        "fastest and pp slowest: the slices of a stage are on the same node, and only stages send bytes between nodes, "
        f"{across['pp']:,} in a step.",
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


def draw_step_limits() -> Canvas:
    """Draw a stage's step of 0.1 s of computing, with the time for its sums over two links, and the bubble of two pipelines."""
    computing, sums, stages = 100.0, 4 * 10 * 65e6, 2
    links = {"NVLink, 300 GB/s": 300e9, "network, 12.5 GB/s": 12.5e9}
    rows: list[tuple[str, float, float]] = [("computing alone", 0.0, 0.0)]
    for link, speed in links.items():
        rows += [
            (f"{link}, {parts} micro-batches", 1e3 * sums / speed, (stages - 1) / (parts + stages - 1)) for parts in (16, 4)
        ]
    totals = [(computing + wait) / (1 - bubble) for _, wait, bubble in rows]
    picture = Canvas(
        "What a step waits for",
        f"Bars of the time of a step, in ms: {computing:.0f} of computing, plus the sums of two slices, plus the bubble of "
        f"{stages} stages. In all: "
        + "; ".join(f"{name}: {total:.0f}" for (name, _, _), total in zip(rows, totals, strict=True))
        + ".",
        46 + 34 * len(rows) + 24,
    )
    left, unit = 232.0, 1.2
    picture.legend(10, (left, "a", "computing"), (left + 120, "d", "sums of slices"), (left + 260, "b", "bubble"))
    for row, ((name, wait, bubble), total) in enumerate(zip(rows, totals, strict=True)):
        x, y = left, 40.0 + 34 * row
        picture.label(8, y + 16, name)
        for size, kind in ((computing, "a"), (wait, "d"), (bubble * total, "b")):
            picture.box(x, y, size * unit, 24, kind)
            x += size * unit
        picture.label(x + 6, y + 16, f"{total:.0f} ms")
    picture.note(
        8, 46 + 34 * len(rows) + 16, "A = 65 MB, 10 layers per stage, 2 slices, 2 stages; by the formulas of this part."
    )
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"mesh-on-nodes": draw_mesh_on_nodes, "step-limits": draw_step_limits}
