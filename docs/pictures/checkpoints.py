"""The picture of 6.4: the file that contains each slice of a tensor."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas

ROWS, WRITERS = 512, 4  # rows of blocks.0.mlp.up.weight at a width of 128, and the number of ranks that saved it
BYTES, FIRST = 67_113, (92_570, 98_875, 97_614, 98_446)  # size of a slice, and the first byte of each slice, in a run of 6.4
COLOURS = "abce"


def cut(ranks: int) -> list[tuple[int, int]]:
    """Return the rows of each rank, as (first, last + 1): slices along dimension 0, as FSDP makes them."""
    return [(rank * ROWS // ranks, (rank + 1) * ROWS // ranks) for rank in range(ranks)]


def list_reads(ranks: int) -> list[list[tuple[int, int, int]]]:
    """Return, for each of this many reading ranks, the files and the rows that it reads."""
    slices = list(enumerate(cut(WRITERS)))
    return [
        [(file, max(low, begin), min(high, end)) for file, (begin, end) in slices if max(low, begin) < min(high, end)]
        for low, high in cut(ranks)
    ]


def draw_slices() -> Canvas:
    """Draw a tensor saved by four ranks, its entries in .metadata, and the files that four, two and one rank read."""
    picture = Canvas(
        "One tensor in four files, and who reads what",
        f"A tensor of {ROWS} rows, cut into four slices of {ROWS // WRITERS} rows. Each of four ranks writes its slice into "
        "a separate file. The table .metadata lists each slice's rows, its file, its first byte in the file and its length: "
        + "; ".join(
            f"rows {low} to {high - 1} in __{n}_0.distcp from byte {FIRST[n]:,}" for n, (low, high) in enumerate(cut(4))
        )
        + f", {BYTES:,} bytes each. Below, three training runs load the tensor: four ranks read one file each, two ranks read "
        "two files each, and one rank reads all four files.",
        392,
    )
    left, wide = 96, 640
    scale = wide / ROWS
    picture.heading(8, 40, "the tensor")
    picture.note(8, 56, "in 4 slices")
    for number, (low, high) in enumerate(cut(WRITERS)):
        words = f"rows {low} to {high - 1}"
        picture.box(left + low * scale, 24, (high - low) * scale - 4, 36, COLOURS[number], words)
        middle = left + (low + high) / 2 * scale
        picture.line(middle, 62, middle, 84, arrow=True)
        picture.label(middle, 102, f"__{number}_0.distcp", anchor="middle")
        picture.note(middle, 118, f"from byte {FIRST[number]:,}", anchor="middle")
        picture.note(middle, 133, f"{BYTES:,} bytes", anchor="middle")
    picture.heading(8, 118, ".metadata")
    picture.line(8, 150, 752, 150, "grid")
    for place, ranks in enumerate((4, 2, 1)):
        top = 176 + place * 66
        picture.heading(8, top + 16, f"on {ranks} rank{'s' * (ranks > 1)}")
        picture.note(8, top + 32, "reads")
        for rank, reads in enumerate(list_reads(ranks)):
            for file, low, high in reads:
                last = 4 if high == reads[-1][2] else 1
                picture.box(left + low * scale, top, (high - low) * scale - last, 26, COLOURS[file], f"file {file}")
            middle = left + (reads[0][1] + reads[-1][2]) / 2 * scale
            picture.label(middle, top + 42, f"rank {rank}", anchor="middle")
    picture.label(8, 382, "No file is converted. A rank asks .metadata which saved slices overlap its own rows.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"slices": draw_slices}
