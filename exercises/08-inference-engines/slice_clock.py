"""The time of a step if a model is cut into slices: each GPU reads its share, and each layer adds up the GPUs' results twice.

A model, not a measurement, in integers like the clock that it uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from cards import CARDS
from step_clock import BYTES, PAGE, ROOM_PERCENT, Clock

FORMATS = {"bf16": 100, "fp8": 50}  # bytes of the weights, in percent of those in 16 bits


@dataclass(frozen=True)
class Link:
    """A link between GPUs: the nanoseconds of a small all-reduce, and the bytes a second that a GPU sends on it."""

    title: str
    latency_ns: int
    bytes_per_s: int


LINKS = {
    "nvlink": Link("NVLink", 10_000, 450 * 10**9),  # H100: 18 links of 25 GB/s in each direction; 8 to 12 us were published
    "pcie": Link("PCIe 4.0 x16", 20_000, 25 * 10**9),  # 31.5 GB/s on paper; the latency is assumed
    "network": Link("100 Gbit/s", 60_000, 12_500_000_000),  # the latency is assumed
}


@dataclass(frozen=True)
class SliceClock:
    """A clock for `slices` GPUs that share each step of a model. With one slice and bf16, its times are those of `clock`.

    `number_format` is the format of the weights. With any of them, products are computed in 16 bits, and the cache has 16 bits.
    """

    clock: Clock
    slices: int = 1
    link: str = "nvlink"
    number_format: str = "bf16"

    @property
    def cache_bytes(self) -> int:
        """Return the bytes that all slices together keep for one token, without copies."""
        return self.clock.cache_bytes

    @cached_property
    def _weight_ns(self) -> int:
        read = -(-self.clock.weight_bytes * FORMATS[self.number_format] // (100 * self.slices))
        return -(-read * 10**9 // self.clock.bytes_per_s)

    @cached_property
    def _holders(self) -> int:
        return min(self.slices, CARDS[self.clock.card].kv_heads)

    def all_reduce_ns(self, tokens: int) -> int:
        """Return the nanoseconds of one all-reduce over the activations of `tokens` tokens, in a ring."""
        if self.slices == 1:
            return 0
        link = LINKS[self.link]
        sent = 2 * (self.slices - 1) * tokens * CARDS[self.clock.card].width * BYTES // self.slices
        return link.latency_ns + -(-sent * 10**9 // link.bytes_per_s)

    def ns(self, rows: Iterable[tuple[int, int]]) -> int:
        """Return the nanoseconds of a step. Each row is a request: the tokens in its cache, and its new tokens."""
        pairs = list(rows)
        scores = sum(count * past + count * (count + 1) // 2 for past, count in pairs)
        return self.ns_of_sums(sum(count for _, count in pairs), sum(past + count for past, count in pairs), scores)

    def ns_of_sums(self, new: int, cached: int, scores: int) -> int:
        """Return the nanoseconds of a step from sums over its requests.

        `new` tokens are computed, the caches have `cached` tokens at the end, and each head computes `scores` scores.
        """
        card, clock = CARDS[self.clock.card], self.clock
        cache_ns = -(-clock.cache_bytes * cached * 10**9 // (self._holders * clock.bytes_per_s))
        operations = clock.weight_bytes // BYTES * 2 * new + 4 * card.layers * card.heads * card.head_dim * scores
        computing_ns = -(-operations * 10**9 // (clock.operations_per_s * self.slices))
        reduces_ns = 2 * card.layers * self.all_reduce_ns(new)
        return clock.overhead_ns + max(self._weight_ns + cache_ns, computing_ns) + reduces_ns

    def pages(self) -> int:
        """Return the number of pages of 16 tokens that fit in memory next to the weights, or 0 if the weights do not fit."""
        clock = self.clock
        memory = round(clock.sheet.memory_gb * 10**9) * ROOM_PERCENT // 100
        weights = -(-BYTES * CARDS[clock.card].parameters * FORMATS[self.number_format] // (100 * self.slices))
        return max(0, (memory - weights) * self._holders // (clock.cache_bytes * PAGE))
