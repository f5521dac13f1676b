"""Judge my_reader.py of 7.3: every record once and unchanged, windows kept, fewer calls; on a larger shard, little memory."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import shards
from shards import Delivery

from gpucourse.judge import Case, Part, Verdict, Way

WAYS = {
    "still-one-by-one": Way(
        "all records came, but nearly each of them has a read call of its own. The calls are {percent:.0f}% of the provided "
        "reader's, and at most {most}% are allowed. If you sort a window, one call can return neighbours",
        ("for run in divide(numbers):", "for run in ([number] for number in order[start : start + window]):"),
    ),
    "gaps-not-bridged": Way(
        "{percent:.0f}% of the provided reader's read calls remain, and at most {most}% are allowed. Neighbours in a sorted "
        "window are rarely adjacent in the file: what else may one call fetch?",
        ("GAP = 16", "GAP = 1"),
        "{percent:.0f}% of the provided reader's read calls remain, and at most {most}% are allowed",
    ),
    "twice-at-the-edge": Way(
        "{count} records were delivered twice: a window ends before the record with which the next one begins",
        ("order[start : start + window]", "order[start : start + window + 1]"),
        seen="{count} records were delivered twice, and {missing} were never delivered",
    ),
    "short-batch-dropped": Way(
        "the last {count} records were never delivered: the last batch may be shorter, but you must yield it",
        ("        if ready:\n            yield ready", "        return"),
        seen="{count} records were never delivered",
    ),
    "windows-broken": Way(
        "records came before their window: training would see a sorted file, not the order that it asked for",
        ("numbers = sorted(order[start : start + window])",
         "numbers = sorted(order)[start : start + window]"),
        seen="some records came in the wrong window",
    ),
    "shifted": Way(
        "{count} records differ from those that were written: where does a record begin in the bytes of one read?",
        ("shard.seek(run[0] * size)", "shard.seek(max(0, run[0] * size - 8))"),
    ),
    "gap-taken-along": Way(
        "{count} records were delivered twice: drop what you read between two wanted records",
        ("for number in run]", "for number in range(run[0], run[-1] + 1)]"),
        seen="{count} records were delivered twice, and {missing} were never delivered",
    ),
    "gap-sliced-as-adjacent": Way(
        "{missing} records were never delivered, and {count} came twice, because you take the records of one read as if they "
        "were adjacent: how far from the first one does a wanted record begin?",
        ("[piece[(number - run[0]) * size : (number - run[0] + 1) * size] for number in run]",
         "[piece[place * size : (place + 1) * size] for place in range(len(run))]"),
        seen="{count} records were delivered twice, and {missing} were never delivered",
    ),
    "uneven-batches": Way(
        "your batches have {sizes} records; all but the last must have {batch}, and the last must have 1 to {batch}",
        ("                while len(ready) >= batch:\n                    yield ready[:batch]\n"
         "                    ready = ready[batch:]\n", "            yield ready\n            ready = []\n"),
    ),
    "whole-file": Way(
        "{mib:.1f} MiB of a file with {file:.1f} were in memory at the same time. Two windows of records are allowed: a shard "
        "may be larger than the memory",
        ("        ready: list[bytes] = []\n", "        ready: list[bytes] = []\n        kept = shard.read()\n"),
    ),
    "mapped-at-random": Way(
        "{calls} read calls are fewer than the {windows} windows, because the file is mapped: each page is read when it is "
        "touched, which no read call shows. Your records came in the random order, so nothing shows that you touch pages in "
        "the order of the file: yield each window in that order, or use read calls",
        ("            numbers = sorted(order[start : start + window])\n            for run in divide(numbers):\n"
         "                shard.seek(run[0] * size)\n"
         "                piece = shard.read((run[-1] - run[0] + 1) * size)\n"
         "                ready += [piece[(number - run[0]) * size : (number - run[0] + 1) * size] for number in run]\n",
         "            mapped = __import__('mmap').mmap(shard.fileno(), 0, access=1)\n"
         "            for number in order[start : start + window]:\n"
         "                ready.append(mapped[number * size : (number + 1) * size])\n"),
        "only {calls} read calls were counted for {windows} windows, and your records came in the random order: yield each "
        "window in the order of the file, or use read calls of this process",
    ),
}  # fmt: skip
RECORDS, SIZE, BATCH, WINDOWS, MAX_PERCENT, ONE_BY_ONE_PERCENT = 3000, 1024, 64, 8, 25, 99
LARGE_RECORDS, LARGE_WINDOWS = 32_000, 32  # so that two windows are far more than a read that bridges 64 records
EVENS, ODDS = list(range(0, 24, 2)), list(range(1, 24, 2))  # two windows of a small shard: a gap follows each record
TAKEN, SLICED = [*range(23), *range(1, 24)], [*range(12), *range(1, 13)]  # with the gaps, and with the gaps for records


def judge(part: Part) -> None:
    """Judge one shard, in an order whose last batch and last window are short. Then judge the memory on a larger one."""
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", sentence="as delivered: right, with a read call for each record")
    batches = part.function("batches")
    window = RECORDS // WINDOWS + 1
    order = shards.shuffle(RECORDS, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shard.bin"
        shards.write_shard(path, RECORDS, SIZE)
        used: list[list[bytes]] = []
        calls = _take(part, batches, path, list(order), window, used)
        small = Path(folder) / "small.bin"
        shards.write_shard(small, len(EVENS + ODDS), SIZE)
        _judge_records(part, used, order, window, lambda: _list_numbers(part, batches, small))
        large = Path(folder) / "large.bin"
        shards.write_shard(large, LARGE_RECORDS, SIZE)
        _judge_memory(part, batches, large)
    if calls is not None and calls < WINDOWS and not _is_sorted(used, window):  # fewer calls than windows: the file is mapped
        raise part.wrong("mapped-at-random", output=_list_delivered(used), calls=calls, windows=WINDOWS)
    if calls is not None:
        percent = 100 * calls / RECORDS
        if percent > MAX_PERCENT:
            way = "still-one-by-one" if percent >= ONE_BY_ONE_PERCENT else "gaps-not-bridged"
            raise part.wrong(way, output=round(percent), percent=percent, most=MAX_PERCENT)
        part.note(f"{RECORDS:,} records with {calls:,} read calls")


def _take(
    part: Part, batches: Callable[..., Any], path: Path, order: list[int], window: int, used: list[list[bytes]]
) -> int | None:
    """Return the read calls. One pass keeps the records, and a second pass counts."""

    def take(keep: bool) -> None:
        request = list(order)
        for records in part.call(_iterate, part, batches(path, SIZE, request, BATCH, window)):
            copies = [bytes(record) for record in records] if keep else []
            used.extend([copies] if keep else [])
        part.compare([Case("the given order after the call", request, list(order))])

    part.call(take, True, case="a shard of 3,000 records")
    return shards.measure(lambda: part.call(take, False)).calls


def _judge_memory(part: Part, batches: Callable[..., Any], path: Path) -> None:
    """Judge the most bytes held at the same time, in more and larger windows than those of the first shard."""
    order, window = shards.shuffle(LARGE_RECORDS, 1), LARGE_RECORDS // LARGE_WINDOWS

    def take() -> None:
        for _ in _iterate(part, batches(path, SIZE, order, BATCH, window)):
            pass

    tracemalloc.start()
    try:
        part.call(take, case=f"a shard of {LARGE_RECORDS:,} records in {LARGE_WINDOWS} windows")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > 2.5 * window * SIZE + (1 << 17):
        raise part.wrong("whole-file", mib=peak / shards.MIB, file=LARGE_RECORDS * SIZE / shards.MIB)


def _is_sorted(used: list[list[bytes]], window: int) -> bool:
    """Return whether the records of each window came in the order of their places in the file."""
    numbers = _list_delivered(used)
    return all(numbers[at : at + window] == sorted(numbers[at : at + window]) for at in range(0, len(numbers), window))


def _list_delivered(used: list[list[bytes]]) -> list[int]:
    return [shards.check_record(record) or 0 for records in used for record in records]


def _list_numbers(part: Part, batches: Callable[..., Any], path: Path) -> list[int]:
    """Return the numbers that a part delivers of a small shard: the even ones are its first window, the odd ones its second."""
    answer = _iterate(part, batches(path, SIZE, EVENS + ODDS, len(EVENS), len(EVENS)))
    return _list_delivered([[bytes(record) for record in records] for records in answer])


def _iterate(part: Part, answer: Any) -> Iterator[Any]:
    if not hasattr(answer, "__iter__"):
        raise Verdict("failed", "no-batches", "it has to yield batches, each a list of records: is the yield missing?")
    return iter(answer)


def _judge_sizes(used: list[list[bytes]]) -> None:
    for number, records in enumerate(used):
        for place, record in enumerate(records):
            if len(record) != SIZE:
                came = f"record {place} of batch {number} has {len(record):,} bytes"
                raise Verdict("failed", "not-records", f"a batch is a list of records of {SIZE:,} bytes each, but {came}")


def _judge_records(
    part: Part, used: list[list[bytes]], order: list[int], window: int, read_small: Callable[[], list[int]]
) -> None:
    _judge_sizes(used)
    delivery: Delivery = shards.check_delivery(iter(used), order, BATCH, window)
    if delivery.wrong:
        raise part.wrong("shifted", count=delivery.wrong)
    counts = {"count": delivery.twice, "missing": delivery.missing}
    if delivery.twice:
        small = part.call(read_small, case="24 records in 2 windows")
        for way, numbers in (("gap-taken-along", TAKEN), ("gap-sliced-as-adjacent", SLICED)):
            if small == numbers:
                raise part.wrong(way, output=small, **counts)
        raise part.wrong("twice-at-the-edge", output=[delivery.twice, delivery.missing], **counts)
    if delivery.missing:
        raise part.wrong("short-batch-dropped", output=delivery.missing, count=delivery.missing)
    if not delivery.in_windows:
        raise part.wrong("windows-broken", output=_list_delivered(used))
    if not delivery.full_batches:
        sizes = Counter(len(records) for records in used).most_common(3)
        raise part.wrong("uneven-batches", sizes=", ".join(str(size) for size, _ in sizes), batch=BATCH)
