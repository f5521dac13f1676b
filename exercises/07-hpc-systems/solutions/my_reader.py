"""Solve the reader of 7.3: sort records within a window, and read neighbours with small gaps in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

GAP = 16  # the most records to read unnecessarily between two wanted ones


def batches(path: Path, size: int, order: list[int], batch: int, window: int) -> Iterator[Sequence[bytes]]:
    """Yield batches, window by window and run by run."""
    with path.open("rb", buffering=0) as shard:
        ready: list[bytes] = []
        for start in range(0, len(order), window):
            numbers = sorted(order[start : start + window])
            for run in divide(numbers):
                shard.seek(run[0] * size)
                piece = shard.read((run[-1] - run[0] + 1) * size)
                ready += [piece[(number - run[0]) * size : (number - run[0] + 1) * size] for number in run]
                while len(ready) >= batch:
                    yield ready[:batch]
                    ready = ready[batch:]
        if ready:
            yield ready


def divide(numbers: list[int]) -> Iterator[list[int]]:
    """Yield runs of numbers whose gaps are small."""
    run = [numbers[0]]
    for number in numbers[1:]:
        if number - run[-1] > GAP:
            yield run
            run = []
        run.append(number)
    yield run
