"""Pictures of module 5 about the memory accesses of warps: sectors, banks, and the tree of a sum. The data is recorded."""

from __future__ import annotations

from docs.pictures.canvas import Canvas
from docs.pictures.sources import locate_record, read_data

SECTOR, WORD, BANKS, WARP = 32, 4, 32, 32
WHERE = "Addresses recorded by the emulator from the kernels of 5.1."


def draw_sectors(shown: int = 16) -> Canvas:
    """Draw the words that a warp uses, and the sectors that are fetched for them, for four access patterns."""
    accesses = read_data(locate_record("accesses"))
    rows = [("copy", "copy, a load"), ("strided_copy", "every second")]
    rows += [("read_field", "one field of four"), ("transpose", "down a column")]
    places = accesses["loads"] | accesses["stores"]
    sectors = {name: sorted({place // SECTOR for place in places[name]}) for name, _ in rows}
    counts = [len(sectors[name]) for name, _ in rows]
    picture = Canvas(
        "What one request of a warp fetches",
        f"Four rows, each the first {shown * SECTOR} bytes of memory as {shown} sectors of 32 bytes with 8 words each. A "
        f"warp uses 32 words in each row. Row 1: neighbouring words, {counts[0]} sectors. Row 2: every second word, "
        f"{counts[1]} sectors. Row 3: one field of a structure of four, {counts[2]} sectors. Row 4: a column of a matrix with "
        f"64 columns, {counts[3]} sectors, of which the picture shows two.",
        234,
    )
    left, wide = 140, 38.0
    for row, (name, words) in enumerate(rows):
        y = 18 + row * 46
        count = len(sectors[name])
        picture.label(8, y + 12, words)
        picture.heading(8, y + 28, f"{count} sectors")
        for sector in range(shown):
            _draw_sector(picture, left + sector * wide, y, [place for place in places[name] if place // SECTOR == sector])
    picture.legend(200, (140, "a", "used"), (210, "b", "in the same sector, not used"), (410, "empty", "not touched"))
    picture.note(8, 230, WHERE)
    return picture


def _draw_sector(picture: Canvas, x: float, y: float, places: list[int]) -> None:
    """Draw the eight words of a sector. Used words have a different colour, if there are any."""
    picture.box(x, y, 36, 30, "b" if places else "empty")
    used = {place % SECTOR // WORD for place in places}
    if len(used) == SECTOR // WORD:
        picture.box(x, y, 36, 30, "a")
        return
    for word in used:
        picture.box(x + word * 4.5, y, 4.5, 30, "a")


def draw_banks() -> Canvas:
    """Draw the bank that each lane accesses when a warp reads a column of a tile, for rows of 32 words and of 34 words."""
    words = read_data(locate_record("accesses"))["words"]
    picture = Canvas(
        "The banks of a tile's column",
        "Two grids of 32 lanes by 32 banks, for a warp that reads a column. With rows of 32 words, all 32 lanes use the same "
        "bank, which serves them one after the other: 31 conflicts. With rows of 34 words, each of 16 banks serves two lanes, "
        "and the other banks are idle: 1 conflict.",
        350,
    )
    cell = 8.5
    for chart, (name, title) in enumerate((("column_of_32", "float tile[32][32]"), ("column_of_34", "float tile[32][34]"))):
        left, top = 64 + chart * 370, 36
        banks = [word % BANKS for word in words[name]]
        turns = max(banks.count(bank) for bank in set(banks))
        picture.heading(left, 24, f"{title}: {turns} turn{'s' if turns > 1 else ''}")
        picture.box(left, top, BANKS * cell, WARP * cell, "empty")
        for lane, bank in enumerate(banks):
            picture.box(left + bank * cell, top + lane * cell, cell - 1, cell - 1, "d" if turns > 2 else "b")
        picture.note(left - 8, top + 12, "lane 0", anchor="end")
        picture.note(left - 8, top + WARP * cell, "31", anchor="end")
        picture.note(left, top + WARP * cell + 14, "bank 0")
        picture.note(left + BANKS * cell, top + WARP * cell + 14, "31", anchor="end")
    picture.note(8, 344, WHERE)
    return picture


def draw_tree() -> Canvas:
    """Draw the threads that add in each step of a sum over a block, with halving and with neighbours first."""
    steps = read_data(locate_record("accesses"))["steps"]
    requests = {name: [len({thread // WARP for thread in threads}) for threads in rows] for name, rows in steps.items()}
    picture = Canvas(
        "Which threads add, step by step",
        "Two charts of 8 warps over 8 steps. With halving, the first 128, 64, 32 and so on of the threads add. In the 8 steps "
        f"they are in {', '.join(map(str, requests['halves']))} warps. With neighbours first, the threads that add are spread "
        f"over the block, in {', '.join(map(str, requests['neighbours']))} warps.",
        290,
    )
    warp = 38.0
    for chart, (name, title) in enumerate((("halves", "halves: part[t + d], d falls"), ("neighbours", "neighbours: d grows"))):
        left = 62 + chart * 360
        picture.heading(left, 20, f"{title}; {sum(requests[name])} warp steps")
        for row, threads in enumerate(steps[name]):
            y = 32 + row * 27
            if chart == 0:
                picture.label(8, y + 15, f"step {row + 1}")
            for number in range(8):
                picture.box(left + number * warp, y, warp - 2, 22, "empty")
            for first, last in _join(threads):
                x = left + first // WARP * warp + first % WARP * (warp - 2) / WARP
                picture.box(x, y, max(1.0, (last - first + 1) * (warp - 2) / WARP), 22, "c" if name == "halves" else "d")
    picture.note(62, 264, "Each box is a warp of 32 threads; the threads that add are coloured.")
    picture.note(8, 284, WHERE)
    return picture


def _join(threads: list[int]) -> list[tuple[int, int]]:
    """Return threads as ranges of neighbouring threads within a warp."""
    ranges: list[tuple[int, int]] = []
    for thread in sorted(threads):
        if ranges and thread == ranges[-1][1] + 1 and thread % WARP:
            ranges[-1] = (ranges[-1][0], thread)
        else:
            ranges.append((thread, thread))
    return ranges


PICTURES = {"sectors": draw_sectors, "banks": draw_banks, "tree": draw_tree}
