"""Pictures of module 5 about a product of matrices: the data that a warp and a block fetch, and the roofline."""

from __future__ import annotations

import math
from itertools import groupby

from docs.pictures.canvas import Canvas
from docs.pictures.devices import GPUS
from docs.pictures.sources import locate_record, read_data

WHERE = "Recorded by the emulator from the kernels of 5.3, n = 64."
SECTOR, CORNER = 8, 32  # float32 numbers in a sector; rows and columns in the picture of lanes
KINDS = "acbe"


def group_by_row(numbers: list[int], n: int) -> list[tuple[int, list[int]]]:
    """Return each row of a matrix that these numbers touch, with its columns, which are adjacent."""
    return [(row, [number % n for number in own]) for row, own in groupby(sorted(numbers), lambda number: number // n)]


def draw_lanes() -> Canvas:
    """Draw the numbers of both matrices that a warp reads at the same time, with the sectors that are fetched for them."""
    data = read_data(locate_record("products"))
    n = data["n"]
    picture = Canvas(
        "What the 32 lanes of a warp read for one k",
        "Corners of the matrices A and B, twice, with the sectors that are read. In naive, the lanes read a column of A, and "
        "all lanes read the same number of B. In coalesced, all lanes read the same number of A, and a row of B.",
        270,
    )
    cell = 5.2
    for place, (name, title) in enumerate(
        (("naive", "naive: lanes differ in the row"), ("coalesced", "coalesced: in the column"))
    ):
        left = 14 + place * 376
        picture.text(left, 20, title, kind="ink bold small")
        for operand, matrix in enumerate("AB"):
            x, y = left + operand * 182, 48
            picture.label(x, 40, matrix)
            picture.box(x, y, CORNER * cell, CORNER * cell, "empty")
            numbers = data["lanes"][name][operand]
            for sector in sorted({number // SECTOR for number in numbers}):
                row, column = divmod(sector * SECTOR, n)
                picture.box(x + column * cell, y + row * cell, SECTOR * cell, cell, "b")
            for row, columns in group_by_row(numbers, n):
                picture.box(x + columns[0] * cell, y + row * cell, len(columns) * cell, cell, "a")
    for kind, x, words in (("a", 14, "read by a lane"), ("b", 140, "in the same sector, not used")):
        picture.box(x, 226, 16, 12, kind)
        picture.note(x + 22, 237, words)
    picture.note(14, 262, WHERE + " The first 32 rows and columns are shown.")
    return picture


def draw_tiles() -> Canvas:
    """Draw the tiles that one block takes, step by step."""
    data = read_data(locate_record("products"))
    n, tile = data["n"], data["tile"]
    steps = n // tile
    picture = Canvas(
        "What a block of tiled fetches",
        f"The matrices A, B and C. A block computes {tile} x {tile} numbers of C. In each of {steps} steps it takes a tile of "
        f"A and a tile of B, from left to right in A and from top to bottom in B. In all it takes {len(data['block'][0])} "
        f"numbers of A and {len(data['block'][1])} of B, each of them once.",
        380,
    )
    cell, left, right, top, bottom = 2.6, 150, 350, 14, 196
    for x, y, name in ((left, bottom, "A"), (right, top, "B"), (right, bottom, "C")):
        picture.box(x, y, n * cell, n * cell, "empty")
        picture.heading(x + n * cell - 6, y + n * cell - 8, name, anchor="end")
    picture.box(right, bottom, tile * cell, tile * cell, "d")
    for operand, (x, y) in enumerate(((left, bottom), (right, top))):
        for step in range(steps):
            corner = step * tile if operand == 0 else step * tile * n
            own = {corner + row * n + column for row in range(tile) for column in range(tile)}
            if not own <= set(data["block"][operand]):
                raise ValueError(f"products.json: the block does not fetch the whole tile {step} of {'AB'[operand]}")
            picture.box(x + corner % n * cell, y + corner // n * cell, tile * cell, tile * cell, KINDS[step])
    for step in range(steps):
        picture.label(left + (step + 0.5) * tile * cell, bottom - 6, f"{step + 1}", anchor="middle")
        picture.label(right - 8, top + (step + 0.5) * tile * cell + 4, f"{step + 1}", anchor="end")
    picture.note(540, 60, "steps 1 to 4 down B")
    picture.note(8, 280, "steps 1 to 4")
    picture.note(8, 294, "along A")
    picture.note(540, 216, f"one block's {tile} x {tile} sums")
    picture.note(8, 376, WHERE)
    return picture


def draw_limits() -> Canvas:
    """Draw the GFLOP/s that a T4's memory allows each version, over its FLOP per requested byte."""
    data, gpu = read_data(locate_record("products")), GPUS["T4"]
    peak, gb_per_s = gpu["fp32"] * 1e3, gpu["gb_per_s"]
    intensity = {name: 2 * data["n"] ** 3 / asked for name, asked in data["bytes"].items()}
    intensity["registers, 32 x 32"] = intensity.pop("registers")
    intensity["registers, 128 x 128"] = 128 / 4
    del intensity["tensor"], intensity["coalesced"]
    limits = {name: min(peak, flop * gb_per_s) for name, flop in intensity.items()}
    picture = Canvas(
        "What a T4's memory allows each version",
        f"Both axes are logarithmic. A slope of {gb_per_s} GB/s meets the roof of {peak:,.0f} GFLOP/s at "
        f"{peak / gb_per_s:.0f} FLOP per byte. "
        + "; ".join(f"{name} with {intensity[name]:g} FLOP per byte: {limits[name]:,.0f} GFLOP/s" for name in limits)
        + ".",
        300,
    )
    x_low, x_high, y_low, y_high = -3, 6, 1.5, 4.2

    def at(flop: float, speed: float) -> tuple[float, float]:
        x = 70 + (math.log2(flop) - x_low) / (x_high - x_low) * 640
        return x, 240 - (math.log10(speed) - y_low) / (y_high - y_low) * 220

    for speed in (100, 1000, 10000):
        y = at(1, speed)[1]
        picture.line(70, y, 710, y, "grid")
        picture.note(62, y + 4, f"{speed:,}", anchor="end")
    for power in range(x_low, x_high + 1):
        picture.note(at(2**power, 1)[0], 258, f"{2.0**power:g}", anchor="middle")
    picture.curve([at(2**x_low, 2**x_low * gb_per_s), at(peak / gb_per_s, peak), at(2**x_high, peak)], "sa")
    for name, flop in intensity.items():
        x, y = at(flop, limits[name])
        picture.dot(x, y, "d")
        label = "naive, coalesced" if name == "naive" else name
        if flop * gb_per_s > peak:
            picture.label(x, y - 12, f"{label}: {limits[name]:,.0f}", anchor="middle")
        else:
            picture.label(x + 8, y + 18, f"{label}: {limits[name]:,.0f}")
    picture.note(390, 276, "FLOP per byte asked for", anchor="middle")
    picture.note(8, 296, f"GFLOP/s at most, from the data sheet and the bytes asked for. {WHERE}")
    return picture


PICTURES = {"lanes": draw_lanes, "tiles": draw_tiles, "product-limits": draw_limits}
