"""Judge my_fix.py of 1.4 on a simulated device with room for as many rows as in the exercise, but shorter ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_iter

from gpucourse.judge import Case, Part, Verdict, Way

COLUMNS, PERIOD = 64, 97
ROOM = (240 << 20) // (4 * 1024)  # rows of 1024 columns that fit on a device of 256 MiB with a context of 16 MiB
CAPACITY = ROOM * COLUMNS * 4  # bytes
TOO_LARGE = int(1.2 * (256 << 20) / (4 * 1024))  # rows
TABLES = ((TOO_LARGE, False), (TOO_LARGE, True), (97, False), (10_007, False), (1, False))  # rows; does another program come?
SHARED_ROOM = 1000  # rows that still fit once the other program has come
TOLERANCE, MAX_PARTS, MANY_PARTS, FEW_ROWS = 1e-4, 500, 40, 1500
WAYS = {
    "all-at-once": Way(
        "it asked for {asked:,} rows at once: the device has room for {room:,}, and the squares need room as well. Load a "
        "part, add its sums to a total, and release the part before the next",
        ("except torch.OutOfMemoryError:", "except ZeroDivisionError:"),
    ),
    "parts-kept": Way(
        "it loads the table in parts but still ran out of memory, with {rows:,} of {wanted:,} rows read. Something, such as "
        "a list or a growing table, still keeps the finished parts. Keep only their sums",
        (
            "    try:\n        piece = load(first, count)\n",
            '    kept = sum_part.__dict__.setdefault("kept", [])\n    try:\n        piece = load(first, count)\n'
            "        kept.append(piece)\n",
        ),
    ),
    "fixed-part": Way(
        "after {rows:,} rows another program took most of the memory: {room:,} rows still fitted, and your function gave up "
        "after asking for {asked:,}. Catch the OutOfMemoryError, and go on with fewer rows at a time",
        ("elif count == 1:", "elif count == 1 or first > 0:"),
    ),
    "parts-too-small": Way(
        "it has read {rows:,} rows in {parts:,} parts, although thousands of rows fit at a time. Each load takes as long as "
        "reading 2,000 rows: you save memory but lose far too much time",
        ("total, first, count = 0, 0, rows", "total, first, count = 0, 0, min(rows, 100)"),
    ),
    "rows-missing": Way(
        "it read {rows:,} of {wanted:,} rows. The last part may be shorter than the others, but it must be read too",
        ("while first < rows:", "while first + count <= rows:"),
    ),
    "rows-beyond": Way(
        "it asked for the rows {first:,} to {last:,}, but the table ends with row {end:,}: the last part may be shorter",
        ("        count = min(count, rows - first)\n", ""),
    ),
    "rows-twice": Way(
        "it read {rows:,} rows of a table that has {wanted:,}: the part that starts at row {begun:,} begins before the "
        "previous part ends",
        ("load(first, count)\n", "load(max(0, first - 1), count + (first > 0))\n"),
    ),
    "starts-again": Way(
        "when memory ran out it began again with row 0, although the sums of the first {rows:,} rows were right: keep them, "
        "and go on with the part that did not fit",
        ("            count //= 2\n", "            total, first, count = 0, 0, count // 2\n"),
    ),
    "last-part-only": Way(
        "these are the sums of the last part only: add the sums of each part to a total",
        ("total, first = total + sums, first + count", "total, first = sums, first + count"),
    ),
    "not-squared": Way(
        "these are the sums of the numbers: square each number first",
        ("piece.square_().sum(", "piece.sum("),
    ),
    "sums-squared": Way(
        "you squared the sums: square each number, and sum afterwards",
        ("piece.square_().sum(dim=0, dtype=torch.float64)", "piece.sum(dim=0, dtype=torch.float64).square()"),
    ),
    "wrong-axis": Way(
        "it returned a tensor of shape {shape}, but there are {columns} columns, each with a sum over the rows",
        ("sum(dim=0, dtype=torch.float64)", "sum(dtype=torch.float64)"),
    ),
    "left-behind": Way(
        "after your function ended, something besides its result still takes {percent:.1f}% of the device: a name outside the "
        "function holds a tensor",
        ("        piece = load(", "        global piece\n        piece = load("),
    ),
}


class Table:
    """A table that is computed when it is read, and counts the rows read. Its row r is row r mod 97 of the pattern.

    If it `is_shared`, another program takes the memory before the second part is read. `excused` are the rows of parts after
    which memory ran out.
    """

    def __init__(self, part: Part, rows: int, memory: Any, *, is_shared: bool) -> None:
        self.part, self.rows, self.memory, self.is_shared = part, rows, memory, is_shared
        self.read, self.excused, self.asked, self.largest, self.is_loading = 0, 0, 0, 0, False
        self.case = f"{rows:,} rows" + (", and another program takes memory" if is_shared else "")
        self.parts: list[tuple[int, int]] = []
        self.other: torch.Tensor | None = None  # the memory of the other program
        self.pattern = ((torch.arange(PERIOD)[:, None] + 3 * torch.arange(COLUMNS)) % PERIOD).float() / PERIOD

    def load(self, first: int, count: int) -> torch.Tensor:
        """Return `count` rows, beginning with `first`. Raises Verdict if the table does not have them."""
        if first < 0 or count < 0 or first + count > self.rows:
            raise self.part.wrong("rows-beyond", self.case, first=first, last=first + count - 1, end=self.rows - 1)
        many = self.rows == TOO_LARGE and not self.is_shared and len(self.parts) > MANY_PARTS
        if many and self.read < FEW_ROWS * len(self.parts):
            raise self.part.wrong("parts-too-small", self.case, rows=self.read, parts=len(self.parts))
        if self.other is not None and first == 0 and not self.excused and any(begin == 0 for begin, _ in self.parts):
            raise self.part.wrong("starts-again", self.case, rows=self.covered())
        self.is_loading, self.asked, self.largest = True, count, max(self.largest, count)
        try:
            free = CAPACITY - self.memory.allocated() - SHARED_ROOM * COLUMNS * 4
            if self.is_shared and self.parts and self.other is None and free > 0:
                self.other = torch.empty(free, dtype=torch.uint8)
            whole = torch.empty(count, COLUMNS)  # counted by the device before anything is filled in
            places = torch.arange(first, first + count, dtype=torch.int32).remainder_(PERIOD)
            torch.index_select(self.pattern, 0, places, out=whole)
        finally:
            self.is_loading = False
        self.read += count
        self.parts.append((first, count))
        return whole

    def excuse(self) -> None:
        """Add the rows of the last part that was read to `excused`. Call this when memory has run out after that read: these
        rows may be read again."""
        if not self.is_loading and self.parts:
            self.excused += self.parts[-1][1]

    def covered(self) -> int:
        """Return the number of rows that were read at least once."""
        end = rows = 0
        for first, count in sorted(self.parts):
            rows += max(0, first + count - max(end, first))
            end = max(end, first + count)
        return rows

    def sums(self, pattern: torch.Tensor, first: int = 0, count: int | None = None) -> torch.Tensor:
        """Return the sums of the repeated `pattern` over `count` rows, beginning with `first`, or over all rows."""
        rows = torch.arange(first, self.rows if count is None else first + count)
        counts = torch.bincount(rows % PERIOD, minlength=PERIOD)
        return (pattern.double() * counts[:, None]).sum(dim=0)


class Calls(TorchFunctionMode):
    """Count the results of each call of torch. A SimulatedMemory would see more, but takes a second to import."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count the result of a function or method of torch. Torch passes all of these calls to this method."""
        result = function(*args, **(kwargs or {}))
        try:
            for tensor in tree_iter(result):
                if isinstance(tensor, torch.Tensor):
                    self.table.memory.count(tensor.untyped_storage())
        except torch.OutOfMemoryError:
            self.table.excuse()
            raise
        return result


def judge(part: Part) -> None:
    """Judge a table that is larger than the device, without another program and with one, and three small tables."""
    from device_memory import SimulatedMemory

    torch.set_num_threads(1)
    function = part.function("sums_of_squares")
    for rows, is_shared in TABLES:
        memory = SimulatedMemory(CAPACITY)
        table = Table(part, rows, memory, is_shared=is_shared)
        with Calls(table):
            answer = part.call(_run, part, function, table, case=table.case)
            table.other = None
            remaining = memory.allocated() - (_bytes(answer) if isinstance(answer, torch.Tensor) else 0)
        _judge_sums(part, table, answer)
        if remaining > CAPACITY // 500:
            raise part.wrong("left-behind", table.case, percent=100 * remaining / CAPACITY)
        if rows == TOO_LARGE and not is_shared:
            peak = 100 * memory.peak() / CAPACITY
            part.note(f"{rows:,} rows, of which the device holds {ROOM:,}, and never more than {peak:.0f}% of it in use")
    part.note(f"right as well when another program leaves room for only {SHARED_ROOM:,} rows")


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().nbytes())


def _run(part: Part, function: Any, table: Table) -> Any:
    try:
        return function(table.load, table.rows)
    except torch.OutOfMemoryError:
        kept = table.memory.allocated() - (_bytes(table.other) if table.other is not None else 0)
        values = {"rows": table.read, "wanted": table.rows, "asked": table.asked, "room": ROOM}
        if len(table.parts) > 1 and kept >= 0.9 * table.covered() * COLUMNS * 4:
            raise part.wrong("parts-kept", table.case, **values) from None
        if table.other is not None:
            raise part.wrong("fixed-part", table.case, **values | {"room": SHARED_ROOM}) from None
        values["asked"] = table.largest
        way = "all-at-once" if 3 * table.largest > ROOM else "parts-kept"
        raise part.wrong(way, table.case, **values) from None


def _judge_sums(part: Part, table: Table, answer: Any) -> None:
    case, covered = table.case, table.covered()
    if covered < table.rows:
        if covered == max((first + count for first, count in table.parts), default=0):  # all rows up to there
            raise part.wrong("rows-missing", case, rows=covered, wanted=table.rows)
        raise Verdict("failed", "other", f"it read {covered:,} of {table.rows:,} rows, and left out some before the last", case)
    if table.read > table.rows + table.excused:
        overlaps = [begin for (first, count), (begin, _) in pairwise(sorted(set(table.parts))) if begin < first + count]
        if overlaps and not table.excused:
            raise part.wrong("rows-twice", case, rows=table.read, wanted=table.rows, begun=overlaps[0])
        says = f"it read {table.read:,} rows of a table that has {table.rows:,}: it loaded the same rows again"
        raise Verdict("failed", "other", says, case)
    if answer is not None:
        answer = part.call(torch.as_tensor, answer, case=case).detach().double()
        if answer.shape != (COLUMNS,):
            raise part.wrong("wrong-axis", case, shape=tuple(answer.shape), columns=COLUMNS)
    right = table.sums(table.pattern.square())
    if answer is not None and torch.allclose(answer, right, rtol=TOLERANCE, atol=TOLERANCE):
        return
    ways = {"not-squared": table.sums(table.pattern)}
    if len(table.parts) < MAX_PARTS:
        parts = [table.sums(table.pattern, first, count) for first, count in table.parts]
        ways |= {"sums-squared": torch.stack(parts).square().sum(dim=0)}
        ways |= {"last-part-only": table.sums(table.pattern.square(), *table.parts[-1])}
    part.compare([Case(case, answer, right, ways)], tolerance=TOLERANCE)
