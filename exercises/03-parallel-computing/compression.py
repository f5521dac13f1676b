"""Formulas for compressed gradients: the bytes sent, and the link speed below which compression pays off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

PAYS_FROM = 2  # PowerSGD compresses a matrix only if it becomes at least this many times smaller


def half_bytes(shapes: Iterable[tuple[int, ...]]) -> int:
    """Return the bytes of tensors of these shapes in a format of 2 bytes per element."""
    return sum(2 * _elements(shape) for shape in shapes)


def byte_bytes(shapes: Iterable[tuple[int, ...]]) -> int:
    """Return the bytes of tensors of these shapes in a format of 1 byte per element."""
    return sum(map(_elements, shapes))


def plain_bytes(shapes: Iterable[tuple[int, ...]]) -> int:
    """Return the bytes of tensors of these shapes in float32."""
    return sum(4 * _elements(shape) for shape in shapes)


def power_sgd_bytes(shapes: Iterable[tuple[int, ...]], rank: int) -> int:
    """Return the bytes if an n x m matrix is sent as P (n x r) and Q (m x r), r (n + m) numbers. Other tensors are not
    compressed.

    Vogels, Karimireddy and Jaggi, "PowerSGD", 2019.
    """
    numbers = 0
    for shape in shapes:
        n, m = shape[0], _elements(shape) // shape[0]
        r = min(n, m, rank)
        numbers += r * (n + m) if r * (n + m) * PAYS_FROM < n * m else n * m
    return 4 * numbers


def count_wire_bytes(size: float, ranks: int, *, gathers: bool = False) -> float:
    """Return the bytes that each rank sends in a ring AllReduce of `size` bytes: 2 (n - 1) / n of them. In an AllGather, `size`
    is the contribution of one rank, and each rank sends n - 1 times as much."""
    return (ranks - 1) * size if gathers else 2 * (ranks - 1) / ranks * size


def pays_below_gbps(saved_bytes: float, extra_ms: float) -> float | None:
    """Return the link speed in Gbit/s at which sending the saved bytes takes as long as compressing. Below it, compression pays
    off.

    Return None if compressing took no measurable time or saves nothing, because there is then no such speed.
    """
    return saved_bytes * 8 / (extra_ms / 1e3) / 1e9 if extra_ms > 0 and saved_bytes > 0 else None


def judge(row: Mapping[str, Any], plain: Mapping[str, Any], ranks: int) -> dict[str, float | None]:
    """Compare a hook's row with `plain`, the row without compression. Return the bytes saved, the extra time, and the link
    speed below which the hook pays off.

    `without_network_ms` is the step in a group of one rank: the hook compresses, and nothing is sent. A difference below zero
    counts as 0, because its time is too short to be measured.
    """
    compressing = max(0.0, row["without_network_ms"] - plain["without_network_ms"])
    communication = max(0.0, row["median_ms"] - row["without_network_ms"])
    plain_wire = count_wire_bytes(plain["bytes_per_step"], ranks)
    wire = count_wire_bytes(row["bytes_per_step"], ranks, gathers=row["gathers"])
    return {
        "wire_bytes": wire,
        "times_smaller": plain["bytes_per_step"] / row["bytes_per_step"],
        "bytes_off": abs(row["bytes_per_step"] - row["bytes_by_formula"]),
        "compressing_ms": compressing,
        "communication_ms": communication,
        "pays_below_gbps": pays_below_gbps(plain_wire - wire, compressing),
        "loss_gap_percent": 100 * (row["loss_after"] / plain["loss_after"] - 1),
    }


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count
