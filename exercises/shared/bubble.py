"""Compute a pipeline's bubble, by the formula and from the time of each piece of work. Nothing is measured here.

A bubble is the share of all stages' time in which a stage has nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

FORWARD, BACKWARD = "forward", "backward"


class Piece(NamedTuple):
    """One micro-batch's way through one stage, forward or backward, and the seconds that the rank computed on it.

    If each of p ranks has several stages (interleaved), rank r has the stages r, p + r, 2 p + r and so on: `chunk` numbers them
    from 0.
    """

    kind: str
    micro_batch: int
    seconds: float
    chunk: int = 0


def predict_bubble(ranks: int, micro_batches: int, chunks: int = 1) -> float:
    """Return (p - 1) / (v m + p - 1) for p ranks with v equal stages each, and m micro-batches.

    For v = 1: Huang et al., GPipe, 2019, section 2.3. For more, m must be a multiple of p: Narayanan et al., "Efficient
    large-scale language model training on GPU clusters using Megatron-LM", 2021, section 2.2.
    """
    return (ranks - 1) / (chunks * micro_batches + ranks - 1)


def replay(orders: Sequence[Sequence[Piece]]) -> float:
    """Return the time in seconds at which the last rank would finish, if each rank had its own processor and sending took no
    time.

    `orders` has the pieces of each rank in the order in which the rank really computed them. A piece begins when its rank is
    free and its input has arrived: forward from the previous stage, backward from the next stage. Raises ValueError if the
    pieces wait for each other for ever.
    """
    end_times: dict[tuple[int, str, int], float] = {}
    free, next_piece = [0.0] * len(orders), [0] * len(orders)
    stages = len(orders) * _count_chunks(orders)
    while any(at < len(order) for at, order in zip(next_piece, orders, strict=True)):
        has_moved = False
        for rank, order in enumerate(orders):
            while next_piece[rank] < len(order):
                piece = order[next_piece[rank]]
                stage = piece.chunk * len(orders) + rank
                source = stage - 1 if piece.kind == FORWARD else stage + 1
                input_piece = (source, piece.kind, piece.micro_batch)
                if 0 <= source < stages and input_piece not in end_times:
                    break
                free[rank] = max(free[rank], end_times.get(input_piece, 0.0)) + piece.seconds
                end_times[stage, piece.kind, piece.micro_batch] = free[rank]
                next_piece[rank] += 1
                has_moved = True
        if not has_moved:
            raise ValueError(
                f"no stage can go on: {[list(order)[at:][:1] for at, order in zip(next_piece, orders, strict=True)]}"
            )
    return max(free)


def idle_share(orders: Sequence[Sequence[Piece]], seconds: float) -> float:
    """Return the share of `seconds` in which the ranks did not compute, over all ranks."""
    busy = sum(piece.seconds for order in orders for piece in order)
    return 1 - busy / (len(orders) * seconds)


def summary(orders: Sequence[Sequence[Piece]], step_ms: float) -> dict[str, object]:
    """Return the row of one schedule: how long each rank was busy, the bubble by formula, replay and clock, and how many
    micro-batches a rank held at most, each with all layers of the rank."""
    chunks = _count_chunks(orders)
    by_formula = 100 * predict_bubble(len(orders), len(orders[0]) // (2 * chunks), chunks)
    replayed = 100 * idle_share(orders, replay(orders))
    return {
        "busy_ms": [round(1e3 * sum(piece.seconds for piece in order), 3) for order in orders],
        "bubble_predicted_percent": by_formula,
        "bubble_replayed_percent": replayed,
        "bubble_off_points": abs(replayed - by_formula),
        "bubble_wall_percent": 100 * idle_share(orders, step_ms / 1e3),
        "in_flight": max(map(count_in_flight, orders)) / chunks,
    }


def count_in_flight(order: Sequence[Piece]) -> int:
    """Return the largest number of pieces whose activations a rank held at once: after their forward, before their backward."""
    count, peak = 0, 0
    for piece in order:
        count += 1 if piece.kind == FORWARD else -1
        peak = max(peak, count)
    return peak


def _count_chunks(orders: Sequence[Sequence[Piece]]) -> int:
    return 1 + max((piece.chunk for order in orders for piece in order), default=0)
