"""The logs of all ranks merged into one: a line that several ranks wrote at the same place is shown once, `[r0-3]`.

Each rank's log is read a window ahead, no further, so memory does not grow with the logs. At every step the next line of a
rank is shown if no other rank will write the same line soon; otherwise it waits for the other ranks. Lines are the same if
they are equal to the last character: two losses that nearly agree are two lines. Lines that differ only in their numbers wait
for each other as well, so that they are shown one below the other, each with its own rank.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, count
from operator import ne, or_

from gpucourse.ui.log_ahead import Ahead, label_of, put_before


def fold(logs: Mapping[int, Iterable[bytes]]) -> Iterator[str]:
    """Yield folded lines, many at a time, each with its ranks before it and a newline after it. `logs` holds the bytes of each
    rank's log, in pieces of any size."""
    opened: list[Ahead] = []
    if logs:
        Ahead({rank: iter(pieces) for rank, pieces in sorted(logs.items())}, opened)
    while live := sorted((log for log in opened if log.line is not None), key=lambda log: log.ranks):
        opened[:] = live
        rows, apart = _count_rows(live)
        if rows:
            yield _join_rows(live, rows, apart)
        if _advance(live, rows):
            continue
        if len(live) == 2:
            yield _say_two(live[0], live[1])
        else:
            yield from _say_many(live)


def _advance(logs: list[Ahead], count: int) -> bool:
    """Move each log past its next `count` lines. Return whether a window had to be filled for that."""
    filled = False
    for log in logs:
        filled |= log.advance(count)
    return filled


def _name_ranks(logs: list[Ahead]) -> str:
    """Return what is before a line that all of these logs have."""
    return label_of(tuple(sorted(chain.from_iterable(log.ranks for log in logs))))


def _count_rows(live: list[Ahead]) -> tuple[int, list[int]]:
    """Return how many of the next lines can be shown row by row, in the same order in which `_find_next` shows them, and in
    which of these rows the lines differ. In a row all logs have the same line, or each has a line that no other log will have
    soon; those lines have the same shape, or shapes that no other log will have soon."""
    if len({log.line for log in live}) > 1 and any(
        log.line in other.block.lines[other.at : other.end] for log, other in zip(live, live[1:] + live[:1], strict=True)
    ):
        return 0, []  # the code below finds the same, only later
    rows = min(log.fill_at - log.at for log in live)
    columns = [log.read(rows) for log in live]
    apart = _find_apart(columns)
    if not apart:
        return rows, apart
    windows = [log.block.lines[log.at : log.end] for log in live]
    rows = _stop_at_shared(rows, apart, columns, windows)
    shapes = [log.block.shapes[log.at : log.end] for log in live]
    columns = [window[:rows] for window in shapes]
    rows = _stop_at_shared(rows, _find_apart(columns), columns, shapes)
    return rows, [row for row in apart if row < rows]


def _find_apart(columns: list[list[bytes]]) -> list[int]:
    """Return the rows in which the columns differ."""
    first, *others = columns
    if all(column == first for column in others):
        return []
    masks = (map(ne, first, column) for column in others)
    return list(compress(count(), functools.reduce(functools.partial(map, or_), masks)))


def _stop_at_shared(rows: int, apart: list[int], columns: list[list[bytes]], windows: list[list[bytes]]) -> int:
    """Return how many of the rows are before the first row of `apart` with an item that several windows have."""
    if not apart:
        return rows
    seen: set[bytes] = set()
    shared: set[bytes] = set()
    for window in map(set, windows):
        shared |= window & seen
        seen |= window
    return _stop_at(rows, apart, columns, shared)


def _stop_at(rows: int, among: Sequence[int], columns: list[list[bytes]], shared: set[bytes]) -> int:
    """Return how many of the rows are before the first row of `among` with an item of `shared`."""
    for column in columns if shared else ():
        if not shared.isdisjoint([column[row] for row in among]):
            rows = min(rows, next(row for row in among if column[row] in shared))
    return rows


def _join_rows(live: list[Ahead], rows: int, apart: list[int]) -> str:
    """Return the next lines row by row, each with its ranks before it; in the rows `apart` the lines differ."""
    together = _name_ranks(live)
    if not apart:
        return put_before(together, live[0].read(rows)) + "\n"
    said = [log.block.texts[log.at : log.at + rows] for log in live]
    texts = list(map("\n".join, zip(*said, strict=True)))
    skipped = len(label_of(live[0].ranks))
    for row in set(range(rows)).difference(apart):
        texts[row] = together + said[0][row][skipped:]
    return "\n".join(texts) + "\n"


def _say_two(log: Ahead, other: Ahead, others: Sequence[Ahead] = (), waits: Sequence[int] = (0, 0)) -> str:
    """Return the lines of two logs as `_find_next` orders them, until a window has to be filled: step by step, for lines that
    ranks wrote in another order. The other logs wait for each other; if these two do so as well, the line of one is shown only
    if its wait is at least as long as `waits` says. What each step needs has a local name, which makes this a quarter faster.
    """
    at, at_2, fill_at, fill_at_2, end, end_2 = log.at, other.at, log.fill_at, other.fill_at, log.end, other.end
    lines, texts, shapes, places = log.block.lines, log.block.texts, log.block.shapes, log.block.places
    lines_2, texts_2, shapes_2, places_2 = other.block.lines, other.block.texts, other.block.shapes, other.block.places
    get, get_2, repeats, repeats_2 = places.first.get, places_2.first.get, places.repeats, places_2.repeats
    together, skipped = _name_ranks([log, other]), len(label_of(log.ranks))
    least, least_2 = waits
    shown: list[str] = []
    show = shown.append
    moves = moves_2 = True
    place = place_2 = -1  # where the other log has the next line; before that log's own place if its window does not have it
    while at < fill_at and at_2 < fill_at_2:
        if moves:
            place = get_2(lines[at], -1)
            if repeats_2 and place < at_2:
                place = places_2.find(lines[at], at_2)
            if place >= end_2:
                place = -1
        if moves_2:
            place_2 = get(lines_2[at_2], -1)
            if repeats and place_2 < at:
                place_2 = places.find(lines_2[at_2], at)
            if place_2 >= end:
                place_2 = -1
        if place > at_2:
            wait, wait_2 = place - at_2, place_2 - at
            if wait_2 < 0 or wait < wait_2:
                if 0 < wait_2 < least_2:
                    break
                show(texts_2[at_2])
                at_2 += 1
                moves, moves_2 = False, True
            else:
                if wait < least:
                    break
                show(texts[at])
                at += 1
                moves, moves_2 = True, False
        elif place_2 > at:
            show(texts[at])
            at += 1
            moves, moves_2 = True, False
        elif place == at_2:
            show(together + texts[at][skipped:])
            at += 1
            at_2 += 1
            moves = moves_2 = True
        else:
            shape, shape_2 = shapes[at], shapes_2[at_2]
            if shape != shape_2:
                moves = not other.comes(shape, at_2) and not _shape_comes(shape, others)
                moves_2 = not log.comes(shape_2, at) and not _shape_comes(shape_2, others)
            if shape == shape_2 or moves == moves_2:
                moves = moves_2 = True
            if moves:
                show(texts[at])
                at += 1
            if moves_2:
                show(texts_2[at_2])
                at_2 += 1
    log.advance(at - log.at)
    other.advance(at_2 - other.at)
    return "\n".join([*shown, ""])


def _say_many(live: list[Ahead]) -> Iterator[str]:
    """Yield the lines as `_find_next` orders them, until a window has to be filled."""
    said = False
    for text in _say_apart(live):
        said = True
        yield text
    while not said:
        groups = _find_next(live)
        for group in groups:
            log = group[0]
            yield _name_ranks(group) + log.block.texts[log.at][len(label_of(log.ranks)) :] + "\n"
        for group in groups:
            said |= _advance(group, 1)


def _say_apart(live: list[Ahead]) -> Iterator[str]:
    """Yield the lines of one or two logs as long as the others wait for each other and have none of these lines."""
    logs = [log for group in _find_next(live) for log in group]
    others = [log for log in live if log not in logs]
    waits = _find_waits(_group(others), others)
    logs += [log for log in others if log.line not in waits]  # these logs wait only for those found above
    if len(logs) == 1:
        logs += sorted((log for log in others if log.distance(logs[0].line or b"") is not None), key=lambda log: log.ranks)[:1]
    logs.sort(key=lambda log: log.ranks)
    others = [log for log in others if log not in logs]
    waits = _find_waits(_group(others), others)
    if len(logs) > 2 or len(waits) < len(_group(others)) or not waits:
        return
    longest, first = max(waits.values()), next(log for log in others if waits[log.line or b""] == max(waits.values()))
    least = [longest if log.ranks < first.ranks else longest + 1 for log in logs]
    soon = set(chain.from_iterable(log.block.lines[log.at : log.end] for log in others))
    ranks = [log.ranks for log in logs]
    while [log.ranks for log in logs if log.line is not None] == ranks and all(
        soon.isdisjoint(log.block.lines[log.at : log.end]) for log in logs
    ):
        if len(logs) == 2:
            if not (text := _say_two(logs[0], logs[1], others, least)):
                return
            yield text
        else:
            lines = logs[0].read(logs[0].fill_at - logs[0].at)
            yield put_before(label_of(*ranks), lines) + "\n"
            logs[0].advance(len(lines))


def _find_next(live: list[Ahead]) -> list[list[Ahead]]:
    """Return the logs whose next lines are to be shown now, in groups that have the same line."""
    groups = _group(live)
    if len(groups) == 1:
        return [live]
    waits = _find_waits(groups, live)
    ready = [group for text, group in groups.items() if text not in waits]
    if ready:
        return [group for group in ready if not _shape_comes(group[0].shape, live)] or ready
    # Each waits for another: the ranks wrote the same lines in another order. Show the line that would wait longest.
    return [groups[max(waits, key=lambda item: waits[item])]]


def _shape_comes(shape: bytes, logs: Iterable[Ahead]) -> bool:
    """Return whether a log whose next line has another shape will soon have a line of this shape, with other numbers."""
    return any(log.shape != shape and log.comes(shape, log.at) for log in logs)


def _group(logs: list[Ahead]) -> dict[bytes, list[Ahead]]:
    """Group these logs by their next line."""
    groups: dict[bytes, list[Ahead]] = {}
    for log in logs:
        groups.setdefault(log.line or b"", []).append(log)
    return groups


def _find_waits(groups: Mapping[bytes, list[Ahead]], logs: list[Ahead]) -> dict[bytes, int]:
    """Return, for each of these next lines that another log will have soon, how many lines ahead the nearest of them is."""
    waits: dict[bytes, int] = {}
    for text in groups:
        distances = [distance for log in logs if log.line != text and (distance := log.distance(text)) is not None]
        if distances:
            waits[text] = min(distances)
    return waits
