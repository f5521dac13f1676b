"""The time of an engine's step by a data sheet: a model, not a measurement, and the same on every computer.

A step reads all weights and the cache of its requests, and computes its products. It takes as long as the slower of the
two, plus a fixed time for everything else. All numbers are integers, so no rounding differs from computer to computer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import gpus
from cards import CARDS, GPUS

PAGE = 16  # tokens
BYTES = 2  # of a number
ROOM_PERCENT = 90  # of the memory is for weights and cache


@dataclass(frozen=True)
class Clock:
    """A clock for steps of a model of `cards.CARDS` on a GPU of `GPUS`, in 16-bit numbers.

    An engine reaches `memory_percent` of the sheet's bandwidth and `compute_percent` of its dense 16-bit speed. Each step takes
    `overhead_ns` in addition. Raises ValueError for a model with experts, windows or latents, which this clock does not
    support.
    """

    card: str = "llama-3.1-8b"
    gpu: str = "l4"
    memory_percent: int = 80
    compute_percent: int = 60
    overhead_ns: int = 2_000_000

    def __post_init__(self) -> None:
        card = CARDS[self.card]
        if card.latent or card.window or card.experts:
            raise ValueError(f"the clock does not support experts, windows or latents, but {self.card} has them")

    @cached_property
    def sheet(self) -> gpus.Gpu:
        """Return the GPU's row of gpus.json."""
        gpu = gpus.find(GPUS[self.gpu])
        if gpu is None:
            raise KeyError(f"{GPUS[self.gpu]} is not in gpus.json")
        return gpu

    @cached_property
    def weight_bytes(self) -> int:
        """Return the bytes of the weights that a step reads: all but the embeddings, of which it reads single rows."""
        card = CARDS[self.card]
        return BYTES * (card.parameters - card.vocabulary * card.width)

    @cached_property
    def cache_bytes(self) -> int:
        """Return the bytes that the cache keeps for one token."""
        card = CARDS[self.card]
        return BYTES * 2 * card.layers * card.kv_heads * card.head_dim

    @cached_property
    def bytes_per_s(self) -> int:
        """Return the bytes per second that the engine reads."""
        return round(self.sheet.gb_per_s * 10**9) * self.memory_percent // 100

    @cached_property
    def operations_per_s(self) -> int:
        """Return the operations per second that the engine computes."""
        return round(self.sheet.fp16 * 10**12) * self.compute_percent // 100

    def ns(self, rows: Iterable[tuple[int, int]]) -> int:
        """Return the nanoseconds of a step. Each row is a request: the tokens in its cache, and its new tokens."""
        pairs = list(rows)
        return self.overhead_ns + max(self.read_ns(pairs), self.compute_ns(pairs))

    def read_ns(self, rows: Sequence[tuple[int, int]]) -> int:
        """Return the nanoseconds that reading the weights and the caches of these requests takes."""
        read = self.weight_bytes + self.cache_bytes * sum(past + new for past, new in rows)
        return -(-read * 10**9 // self.bytes_per_s)

    def compute_ns(self, rows: Sequence[tuple[int, int]]) -> int:
        """Return the nanoseconds that computing the products takes. A new token has scores for the keys up to its own."""
        card = CARDS[self.card]
        scores = sum(new * past + new * (new + 1) // 2 for past, new in rows)
        operations = self.weight_bytes // BYTES * 2 * sum(new for _, new in rows)
        operations += 4 * card.layers * card.heads * card.head_dim * scores
        return -(-operations * 10**9 // self.operations_per_s)

    def pages(self, gpus_together: int = 1) -> int:
        """Return the number of pages of 16 tokens that fit in memory next to the weights, or 0 if the weights do not fit."""
        room = round(self.sheet.memory_gb * 10**9) * gpus_together * ROOM_PERCENT // 100 - BYTES * CARDS[self.card].parameters
        return max(0, room // (self.cache_bytes * PAGE))


def fit_shares(points: Sequence[tuple[float, float, float]], sheet: gpus.Gpu) -> dict[str, float]:
    """Return `memory_percent`, `compute_percent` and `overhead_us` of the clock that fits measured steps best: its worst
    relative error is the smallest.

    Each point has the bytes that a step reads, its operations, and its seconds. `off_percent` is the worst error, in percent of
    the measured time.
    """
    fits = []
    for memory, compute in itertools.product(range(1, 101), repeat=2):
        rates = sheet.gb_per_s * 1e7 * memory, sheet.fp16 * 1e10 * compute
        times = [max(read / rates[0], operations / rates[1]) for read, operations, _ in points]
        rests = sorted(seconds - time for time, (_, _, seconds) in zip(times, points, strict=True))
        overhead = max(0.0, rests[len(rests) // 2])
        off = max(abs(overhead + time - seconds) / seconds for time, (_, _, seconds) in zip(times, points, strict=True))
        fits.append((off, memory, compute, overhead))
    off, memory, compute, overhead = min(fits)
    return {
        "memory_percent": memory, "compute_percent": compute, "overhead_us": 1e6 * overhead, "off_percent": 100 * off,
    }  # fmt: skip
