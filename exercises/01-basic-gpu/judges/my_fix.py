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
TABLES = (TOO_LARGE, 97, 10_007, 1)  # rows
TOLERANCE, MAX_PARTS, FEW_ROWS = 1e-4, 500, 40
WAYS = {
    "all-at-once": Way(
        "it asked for {asked:,} rows at once: the device has room for {room:,}, and the squares need room as well. Load a "
        "part, add its sums to a total, and release the part before the next",
        ("PIECE = 4096", "PIECE = 400_960"),
    ),
    "parts-kept": Way(
        "it loads the table in parts but still ran out of memory, with {rows:,} of {wanted:,} rows read. Something, such as "
        "a list or a growing table, still keeps the finished parts. Keep only their sums",
        (
            "    total = 0\n    for first in range(0, rows, PIECE):\n        piece = load(first, min(PIECE, rows - first))\n"
            "        total = total + piece.square_().sum(dim=0, dtype=torch.float64)\n    return total\n",
            "    pieces = [load(first, min(PIECE, rows - first)) for first in range(0, rows, PIECE)]\n"
            "    return sum(piece.square_().sum(dim=0) for piece in pieces)\n",
        ),
    ),
    "parts-too-small": Way(
        "it has read {rows:,} rows in {parts:,} parts. Each part costs a call to load and some launches, which take as long "
        "for a few rows as for thousands: you save memory but lose far too much time",
        ("PIECE = 4096", "PIECE = 8"),
    ),
    "rows-missing": Way(
        "it read {rows:,} of {wanted:,} rows. The last part may be shorter than the others, but it must be read too",
        ("range(0, rows, PIECE)", "range(0, rows - PIECE + 1, PIECE)"),
    ),
    "rows-beyond": Way(
        "it asked for the rows {first:,} to {last:,}, but the table ends with row {end:,}: the last part may be shorter",
        ("min(PIECE, rows - first)", "PIECE"),
    ),
    "rows-twice": Way(
        "it read {rows:,} rows of a table that has {wanted:,}: the part that starts at row {begun:,} begins before the "
        "previous part ends",
        ("load(first, min(PIECE, rows - first))", "load(first, min(PIECE + 1, rows - first))"),
    ),
    "last-part-only": Way(
        "these are the sums of the last part only: add the sums of each part to a total",
        ("total = total + piece", "total = piece"),
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
    """A table that is computed when it is read, and counts the rows read. Its row r is row r mod 97 of the pattern."""

    def __init__(self, part: Part, rows: int) -> None:
        self.part, self.rows, self.read, self.largest = part, rows, 0, 0
        self.parts: list[tuple[int, int]] = []
        self.pattern = ((torch.arange(PERIOD)[:, None] + 3 * torch.arange(COLUMNS)) % PERIOD).float() / PERIOD

    def load(self, first: int, count: int) -> torch.Tensor:
        """Return `count` rows, beginning with `first`. Raises Verdict if the table does not have them."""
        if first < 0 or count < 0 or first + count > self.rows:
            raise self.part.wrong("rows-beyond", f"{self.rows:,} rows", first=first, last=first + count - 1, end=self.rows - 1)
        if self.rows == TOO_LARGE and len(self.parts) > FEW_ROWS and self.read < FEW_ROWS * len(self.parts):
            raise self.part.wrong("parts-too-small", f"{self.rows:,} rows", rows=self.read, parts=len(self.parts))
        self.largest = max(self.largest, count)
        whole = torch.empty(count, COLUMNS)  # counted by the device before anything is filled in
        places = torch.arange(first, first + count, dtype=torch.int32).remainder_(PERIOD)
        torch.index_select(self.pattern, 0, places, out=whole)
        self.read += count
        self.parts.append((first, count))
        return whole

    def sums(self, pattern: torch.Tensor, first: int = 0, count: int | None = None) -> torch.Tensor:
        """Return the sums of the repeated `pattern` over `count` rows, beginning with `first`, or over all rows."""
        rows = torch.arange(first, self.rows if count is None else first + count)
        counts = torch.bincount(rows % PERIOD, minlength=PERIOD)
        return (pattern.double() * counts[:, None]).sum(dim=0)


class Calls(TorchFunctionMode):
    """Count the results of each call of torch. A SimulatedMemory would see more, but takes a second to import."""

    def __init__(self, memory: Any) -> None:
        super().__init__()
        self.memory = memory

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count the result of a function or method of torch. Torch passes all of these calls to this method."""
        result = function(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor):
                self.memory.count(tensor.untyped_storage())
        return result


def judge(part: Part) -> None:
    """Judge a table that is larger than the device, and three small tables."""
    from device_memory import SimulatedMemory

    torch.set_num_threads(1)
    function = part.function("sums_of_squares")
    for rows in TABLES:
        table, memory = Table(part, rows), SimulatedMemory(CAPACITY)
        with Calls(memory):
            answer = part.call(_run, part, function, table, case=f"{rows:,} rows")
            remaining = memory.allocated() - (_bytes(answer) if isinstance(answer, torch.Tensor) else 0)
        _judge_sums(part, table, answer)
        if remaining > CAPACITY // 500:
            raise part.wrong("left-behind", f"{rows:,} rows", percent=100 * remaining / CAPACITY)
        if rows == TOO_LARGE:
            peak = 100 * memory.peak() / CAPACITY
            part.note(f"{rows:,} rows, of which the device holds {ROOM:,}, and never more than {peak:.0f}% of it in use")


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().nbytes())


def _run(part: Part, function: Any, table: Table) -> Any:
    try:
        return function(table.load, table.rows)
    except torch.OutOfMemoryError:
        way = "all-at-once" if 3 * table.largest > ROOM else "parts-kept"
        values = {"rows": table.read, "wanted": table.rows, "asked": table.largest, "room": ROOM}
        raise part.wrong(way, f"{table.rows:,} rows", **values) from None


def _judge_sums(part: Part, table: Table, answer: Any) -> None:
    case = f"{table.rows:,} rows"
    counts = {"rows": table.read, "wanted": table.rows}
    if table.read < table.rows:
        if table.read == max((first + count for first, count in table.parts), default=0):  # all rows up to there
            raise part.wrong("rows-missing", case, **counts)
        raise Verdict(
            "failed", "other", f"it read {table.read:,} of {table.rows:,} rows, and left out some before the last", case
        )
    if table.read > table.rows:
        overlaps = [begin for (first, count), (begin, _) in pairwise(sorted(set(table.parts))) if begin < first + count]
        if overlaps:
            raise part.wrong("rows-twice", case, **counts, begun=overlaps[0])
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
