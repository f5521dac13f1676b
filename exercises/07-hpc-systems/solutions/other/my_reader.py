"""Solve the reader of 7.3 with a thread that reads the next window in advance, in large blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BLOCK = 256  # records


def batches(path: Path, size: int, order: list[int], batch: int, window: int) -> Iterator[Sequence[bytes]]:
    """Yield batches, window by window, with one window read ahead."""
    windows = [order[start : start + window] for start in range(0, len(order), window)]
    shard = os.open(path, os.O_RDONLY)
    try:
        with ThreadPoolExecutor(1) as ahead:
            next_window = ahead.submit(fetch, shard, size, windows[0])
            ready: list[bytes] = []
            for following in [*windows[1:], []]:
                ready += next_window.result()
                next_window = ahead.submit(fetch, shard, size, following)
                while len(ready) >= batch:
                    yield ready[:batch]
                    del ready[:batch]
            if ready:
                yield ready
    finally:
        os.close(shard)


def fetch(shard: int, size: int, requested: list[int]) -> list[bytes]:
    """Return the requested records, sorted by their places in the file. Read one block at a time."""
    records = []
    blocks: dict[int, list[int]] = {}
    for number in sorted(requested):
        blocks.setdefault(number // BLOCK, []).append(number)
    for block, numbers in blocks.items():
        data = os.pread(shard, BLOCK * size, block * BLOCK * size)
        for number in numbers:
            place = number % BLOCK * size
            records.append(data[place : place + size])
    return records
