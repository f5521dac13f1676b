"""The pictures of the twelve first kernels of module 5. The numbers in them are computed by what each kernel does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from docs.pictures.canvas import Canvas

CELL, GAP = 34.0, 4.0
STEP = CELL + GAP
LEFT = 110.0
NUMBERS = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3)
BLOCK_KINDS = ("a", "c", "e", "b")


def _draw_row(
    picture: Canvas, y: float, name: str, texts: Sequence[object], kinds: Sequence[str] | str, x: float = LEFT
) -> None:
    """Draw a row of cells with a name before it. `kinds` is the colour of all cells, or one for each."""
    picture.label(8, y + 21, name)
    for place, text in enumerate(texts):
        kind = kinds if isinstance(kinds, str) else kinds[place]
        picture.box(x + place * STEP, y, CELL, CELL, kind, str(text))


def _join(picture: Canvas, place: float, y: float, to_place: float, to_y: float, kind: str = "line") -> None:
    """Draw an arrow from the lower edge of a cell to the upper edge of another."""
    x, to_x = (LEFT + at * STEP + CELL / 2 for at in (place, to_place))
    picture.line(x, y + CELL, to_x, to_y, kind, arrow=True)


def _draw_matrix(
    picture: Canvas, x: float, y: float, rows: Sequence[Sequence[object]], kind: Callable[[int, int], str]
) -> None:
    for r, texts in enumerate(rows):
        for c, text in enumerate(texts):
            picture.box(x + c * STEP, y + r * STEP, CELL, CELL, kind(r, c), str(text))


def draw_map() -> Canvas:
    """Draw one thread for each number."""
    picture = Canvas(
        "map: one thread for each number",
        "Eight numbers above, eight numbers below, each 10 larger. An arrow from each number to the one below it is a thread, "
        "with threadIdx.x from 0 to 7.",
        150,
    )
    _draw_row(picture, 14, "in", NUMBERS[:8], "empty")
    _draw_row(picture, 100, "out", [number + 10 for number in NUMBERS[:8]], "a")
    picture.label(8, 78, "threadIdx.x")
    for thread in range(8):
        _join(picture, thread, 14, thread, 100)
        picture.note(LEFT + thread * STEP + CELL / 2 + 4, 78, str(thread))
    return picture


def draw_guard() -> Canvas:
    """Draw ten numbers, three blocks of four threads, and the two threads that have no number."""
    picture = Canvas(
        "guard: whole blocks, and numbers that do not fill them",
        "Ten numbers and twelve threads in three blocks of four. Threads 0 to 9 each point to a number; threads 10 and 11, in "
        "red, have none.",
        140,
    )
    threads = [*range(12)]
    _draw_row(picture, 14, "blockIdx.x", [thread // 4 for thread in threads], [BLOCK_KINDS[thread // 4] for thread in threads])
    _draw_row(picture, 92, "in", NUMBERS, "empty")
    picture.label(8, 76, "i")
    for thread in threads:
        has_number = thread < len(NUMBERS)
        if has_number:
            _join(picture, thread, 14, thread, 92)
        picture.note(LEFT + thread * STEP + CELL / 2 + 4, 76, str(thread))
        if not has_number:
            picture.box(LEFT + thread * STEP, 92, CELL, CELL, "d", "none")
    return picture


def draw_two_dimensions(rows: int = 5, columns: int = 6) -> Canvas:
    """Draw a matrix under blocks of 4 x 4 threads, and its place in memory."""
    picture = Canvas(
        "two_dimensions: blocks of threads over a matrix",
        f"A grid of two by two blocks of 4 x 4 threads over a matrix of {rows} rows and {columns} columns. Each number is "
        "shown by its place in memory, 0 to 29, row after row. The threads beyond the last row or column have no number. "
        "Row 2, column 3 is at place 15.",
        336,
    )
    for r in range(8):
        for c in range(8):
            is_inside = r < rows and c < columns
            kind = BLOCK_KINDS[r // 4 * 2 + c // 4] if is_inside else "empty"
            picture.box(LEFT + c * STEP, 26 + r * STEP, CELL, CELL, kind, str(r * columns + c) if is_inside else "-")
    picture.note(LEFT, 16, "x: columns, c")
    picture.label(8, 44, "y: rows, r")
    picture.label(LEFT + 8 * STEP + 20, 44, "each colour is a block")
    picture.label(LEFT + 8 * STEP + 20, 26 + 2 * STEP + 21, f"r = 2, c = 3: two rows of {columns} and 3 numbers before it")
    picture.label(LEFT + 8 * STEP + 20, 26 + 6 * STEP + 21, "- : a thread without a number")
    return picture


def draw_broadcast() -> Canvas:
    """Draw a matrix of sums from a column and a row."""
    a, b = (0, 10, 20, 30), (1, 2, 3, 4, 5)
    picture = Canvas(
        "broadcast: a column and a row fill a matrix",
        "A column of four numbers at the left, a row of five numbers above, and the matrix of their sums. The sum 24 in row 2, "
        "column 3 is marked, and so are its two parts: 20 in the column and 4 in the row.",
        232,
    )
    picture.label(8, 35, "b, by column")
    _draw_row(picture, 14, "", b, ["b" if c == 3 else "empty" for c in range(5)], LEFT + 100)
    picture.label(8, 86, "a, by row")
    _draw_matrix(picture, LEFT, 66, [[number] for number in a], lambda r, _c: "b" if r == 2 else "empty")
    _draw_matrix(picture, LEFT + 100, 66, [[x + y for y in b] for x in a], lambda r, c: "a" if (r, c) == (2, 3) else "empty")
    return picture


def draw_halo() -> Canvas:
    """Draw the tile of a block, with the two numbers that belong to its neighbours."""
    picture = Canvas(
        "halo: a block's numbers, and one more on each side",
        "An array of ten numbers in blocks of four. The tile of block 1 holds six numbers: its own four, 5, 9, 2 and 6, and "
        "one on each side, 1 and 5. Below are its four sums of three: 15, 16, 17 and 13.",
        222,
    )
    owners = [place // 4 for place in range(len(NUMBERS))]
    _draw_row(picture, 14, "in", NUMBERS, ["a" if owner == 1 else "b" if place in {3, 8} else "empty"
                                           for place, owner in enumerate(owners)])  # fmt: skip
    _draw_row(picture, 100, "tile of block 1", NUMBERS[3:9], ["b", "a", "a", "a", "a", "b"], LEFT + 3 * STEP)
    sums = [sum(NUMBERS[place - 1 : place + 2]) for place in range(4, 8)]
    _draw_row(picture, 180, "out", sums, "a", LEFT + 4 * STEP)
    for place in range(3, 9):
        _join(picture, place, 14, place, 100)
    for place in range(4, 8):
        for neighbour in (-1, 0, 1):
            _join(picture, place + neighbour, 100, place, 180)
    picture.note(LEFT + 9.4 * STEP, 121, "the outer two belong to other blocks")
    return picture


def draw_pooling() -> Canvas:
    """Draw windows of four numbers, of which the last is shorter."""
    values = [-number for number in NUMBERS]
    picture = Canvas(
        "pooling: the largest number of each window",
        "Ten negative numbers in windows of four, four and two. Below them the largest of each window: -1, -2 and -3. No zero "
        "is among them.",
        140,
    )
    kinds = [BLOCK_KINDS[place // 4] for place in range(len(values))]
    _draw_row(picture, 14, "in", values, kinds)
    picture.label(8, 113, "out")
    for window in range(3):
        members = range(4 * window, min(4 * window + 4, len(values)))
        middle = sum(members) / len(members)
        picture.box(LEFT + middle * STEP, 92, CELL, CELL, BLOCK_KINDS[window], str(max(values[place] for place in members)))
        for place in members:
            _join(picture, place, 14, middle, 92)
    return picture


def draw_axis_sum() -> Canvas:
    """Draw one thread for each column of a matrix."""
    rows = [NUMBERS[:6], NUMBERS[2:8], NUMBERS[4:10]]
    picture = Canvas(
        "axis_sum: a thread walks down a column",
        "A matrix of three rows and six columns. Each thread adds up the three numbers of one column, and neighbouring threads "
        "are in neighbouring columns. Below are the six sums.",
        196,
    )
    picture.label(8, 35, "in")
    _draw_matrix(picture, LEFT, 14, rows, lambda _r, c: BLOCK_KINDS[c % 4])
    _draw_row(picture, 154, "out", [sum(column) for column in zip(*rows, strict=True)], [BLOCK_KINDS[c % 4] for c in range(6)])
    for c in range(6):
        _join(picture, c, 14 + 2 * STEP, c, 154)
    picture.note(LEFT + 6.4 * STEP, 35, "all threads read this row at the same time,")
    picture.note(LEFT + 6.4 * STEP, 35 + STEP, "then this one")
    return picture


def draw_scan() -> Canvas:
    """Draw the steps of a scan over eight numbers."""
    values = list(NUMBERS[:8])
    picture = Canvas(
        "scan: each step reaches twice as far",
        "Eight numbers, and below them three steps. In step d = 1, 2, 4 each number is increased by the one d places to the "
        f"left. After the last step they are {', '.join(map(str, accumulate(values)))}, which are the sums up to each number.",
        290,
    )
    _draw_row(picture, 14, "in", values, "empty")
    for step, d in enumerate((1, 2, 4)):
        y = 14 + (step + 1) * 80
        changed = [value + values[place - d] if place >= d else value for place, value in enumerate(values)]
        for place in range(d, len(values)):
            _join(picture, place - d, y - 80, place, y)
        _draw_row(picture, y, f"after d = {d}", changed, ["a" if place >= d else "empty" for place in range(len(values))])
        values = changed
    if values != list(accumulate(NUMBERS[:8])):
        raise ValueError("the steps do not give the sums")
    return picture


def draw_histogram() -> Canvas:
    """Draw threads that add to the count of their bin, two of them to the same one."""
    bins = (2, 0, 3, 2, 1, 2, 3, 2)
    picture = Canvas(
        "histogram: many threads, few counts",
        "Eight numbers from 0 to 3, and four counts below. An arrow leads from each number to its count. Four arrows, in red, "
        "end at count 2, which becomes 4.",
        176,
    )
    _draw_row(picture, 14, "bin", bins, ["b" if place == 2 else "empty" for place in bins])
    _draw_row(
        picture, 120, "count", [bins.count(place) for place in range(4)], ["empty", "empty", "d", "empty"], LEFT + 2 * STEP
    )
    for place, target in enumerate(bins):
        _join(picture, place, 14, target + 2, 120, "curve sd" if target == 2 else "line")
    for place in range(4):
        picture.note(LEFT + (place + 2) * STEP + CELL / 2, 170, str(place), anchor="middle")
    return picture


def draw_embedding() -> Canvas:
    """Draw rows of a table that tokens choose."""
    tokens, width = (3, 0, 3), 6
    picture = Canvas(
        "embedding: a token chooses a row",
        "Three tokens, 3, 0 and 3, at the left; a table of four rows of six numbers in the middle; three rows of six numbers "
        "at the right. The first and the third are copies of row 3 of the table, the second is a copy of row 0.",
        186,
    )
    table = [[10 * row + column for column in range(width)] for row in range(4)]
    kinds = {0: "c", 3: "a"}
    picture.label(8, 18, "token")
    _draw_matrix(picture, 8, 26, [[token] for token in tokens], lambda r, _c: kinds[tokens[r]])
    picture.label(110, 18, "table")
    _draw_matrix(picture, 110, 26, table, lambda r, _c: kinds.get(r, "empty"))
    picture.label(450, 18, "out: one block for each row")
    _draw_matrix(picture, 450, 26, [table[token] for token in tokens], lambda r, _c: kinds[tokens[r]])
    return picture


def draw_transpose() -> Canvas:
    """Draw a matrix, its transpose, and where the numbers of one row go in memory."""
    rows, columns = 3, 5
    picture = Canvas(
        "transpose: a row becomes a column",
        "A matrix of three rows and five columns, numbered by place in memory, 0 to 14, and its transpose of five rows and "
        "three columns. The marked row 1 with places 5 to 9 becomes column 1, whose places in out are 1, 4, 7, 10 and 13.",
        226,
    )
    picture.label(8, 45, "in")
    _draw_matrix(picture, LEFT, 26, [[r * columns + c for c in range(columns)] for r in range(rows)],
                 lambda r, _c: "a" if r == 1 else "empty")  # fmt: skip
    picture.label(360, 45, "out")
    _draw_matrix(picture, 400, 26, [[r * columns + c for r in range(rows)] for c in range(columns)],
                 lambda _r, c: "a" if c == 1 else "empty")  # fmt: skip
    places = [c * rows + 1 for c in range(columns)]
    picture.note(400 + 3 * STEP + 12, 45, "place in out:")
    for c, place in enumerate(places):
        picture.note(400 + 3 * STEP + 110, 45 + c * STEP, str(place))
    return picture


def draw_dot(lanes: int = 4) -> Canvas:
    """Draw products, the sums of two warps, and the sum of all."""
    other = (2, 7, 1, 8, 2, 8, 1, 8)
    products = [x * y for x, y in zip(NUMBERS, other, strict=False)]
    sums = [sum(products[first : first + lanes]) for first in range(0, len(products), lanes)]
    picture = Canvas(
        "dot: products, warps, one sum",
        f"Eight products in two warps, drawn with {lanes} lanes instead of 32. warp_sum adds up each warp in its first lane: "
        f"{sums[0]} and {sums[1]}. Two atomic additions make {sum(sums)}.",
        212,
    )
    kinds = ["a"] * lanes + ["c"] * lanes
    _draw_row(picture, 14, "a[i] * b[i]", products, kinds)
    _draw_row(picture, 92, "warp_sum", [sums[0], "", "", "", sums[1], "", "", ""], ["a", *["empty"] * 3, "c", *["empty"] * 3])
    _draw_row(picture, 170, "*sum", [sum(sums)], "b", LEFT + 2 * STEP)
    for place in range(2 * lanes):
        _join(picture, place, 14, place // lanes * lanes, 92)
    for place in (0, lanes):
        _join(picture, place, 92, 2, 170)
    picture.note(LEFT + 5 * STEP, 160, "one atomicAdd for each warp")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {
    "first-map": draw_map, "first-guard": draw_guard, "first-two-dimensions": draw_two_dimensions,
    "first-broadcast": draw_broadcast, "first-halo": draw_halo, "first-pooling": draw_pooling, "first-axis-sum": draw_axis_sum,
    "first-scan": draw_scan, "first-histogram": draw_histogram, "first-embedding": draw_embedding,
    "first-transpose": draw_transpose, "first-dot": draw_dot,
}  # fmt: skip
