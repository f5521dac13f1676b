"""Compute a collective's bandwidths, latency and plateau. Only formulas: nothing is measured here.

GB is 10**9 bytes, as in the data sheets of links. Times are in seconds, sizes in bytes, bandwidths in GB/s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

NEAR_THE_TOP, STILL_RISING = 0.95, 0.05


def bus_factor(collective: str, ranks: int) -> float:
    """Return how often each byte of the tensor crosses the busiest link, whatever the algorithm (nccl-tests,
    doc/PERFORMANCE.md).

    The tensor is the whole tensor. After an AllGather, each rank has all of it; to a ReduceScatter, each rank contributes all
    of it.
    """
    share = (ranks - 1) / ranks
    return {"all_reduce": 2 * share, "broadcast": 1.0, "all_gather": share, "reduce_scatter": share}[collective]


def algbw(size: float, seconds: float) -> float:
    """Return the algorithm bandwidth as the caller sees it: the size of the tensor divided by the time."""
    return size / seconds / 1e9


def busbw(collective: str, size: float, seconds: float, ranks: int) -> float:
    """Return the bus bandwidth: the algorithm bandwidth times the bus factor. It can be compared with a link's data sheet."""
    return algbw(size, seconds) * bus_factor(collective, ranks)


def nearest_rank(samples: Sequence[float], percent: float) -> float:
    """Return the smallest sample that `percent` percent of all samples do not exceed.

    For 99 % of fewer than 100 samples, this is the largest sample.
    """
    return sorted(samples)[max(1, math.ceil(len(samples) * percent / 100)) - 1]


def join_ends(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float] | None:
    """Return latency (seconds) and bandwidth (bytes per second) by the line through the first and the last size.

    Return None if there is no such line, or if one of the two is not above 0.
    """
    if len(set(sizes)) < 2:
        return None
    per_byte = (seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0])
    latency = seconds[0] - per_byte * sizes[0]
    return (latency, 1 / per_byte) if per_byte > 0 and latency > 0 else None


@dataclass(frozen=True)
class Plateau:
    """The plateau of a curve.

    It has the size at which the plateau begins (or None), the gain from the last doubling of the size, and a description.
    """

    size: float | None
    gain_percent: float | None
    words: str


def plateau(sizes: Sequence[float], bandwidths: Sequence[float]) -> Plateau:
    """Return the plateau, which begins at the smallest size with 95 % of the best bandwidth of the three largest sizes.

    While a doubling of the size still gains more than 5 %, the plateau is not reached.
    """
    if len(sizes) < 3:
        return Plateau(None, None, "too few sizes to say")
    doublings = math.log2(sizes[-1] / sizes[-2])
    gain = (bandwidths[-1] / bandwidths[-2]) ** (1 / doublings) - 1
    if gain > STILL_RISING:
        return Plateau(None, 100 * gain, f"not reached: still rises {100 * gain:.0f} % per doubling")
    threshold = NEAR_THE_TOP * max(bandwidths[-3:])
    first = next(size for size, bandwidth in zip(sizes, bandwidths, strict=True) if bandwidth >= threshold)
    falling = f", then drops {-100 * gain:.0f} % per doubling" if gain < -STILL_RISING else ""
    return Plateau(first, 100 * gain, f"from {first:,} bytes{falling}")
