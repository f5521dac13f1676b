"""Compute a pipeline's bubble, by the formula and from the time of each piece of work. Nothing is measured here.

A bubble is the share of all stages' time in which a stage has nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

FORWARD, BACKWARD = "forward", "backward"


class Piece(NamedTuple):
    """One micro-batch's way through one stage, forward or backward, and the seconds that the stage computed on it."""

    kind: str
    micro_batch: int
    seconds: float


def predict_bubble(stages: int, micro_batches: int) -> float:
    """Return (p - 1) / (m + p - 1) for p equal stages and m micro-batches: Huang et al., GPipe, 2019, section 2.3."""
    return (stages - 1) / (micro_batches + stages - 1)


def replay(orders: Sequence[Sequence[Piece]]) -> float:
    """Return the time in seconds at which the last stage would finish, if each stage had its own processor and sending took no
    time.

    `orders` has the pieces of each stage in the order in which the stage really computed them. A piece begins when its stage is
    free and its input has arrived: forward from the previous stage, backward from the next stage. Raises ValueError if the
    pieces wait for each other for ever.
    """
    end_times: dict[tuple[int, str, int], float] = {}
    free, next_piece = [0.0] * len(orders), [0] * len(orders)
    while any(at < len(order) for at, order in zip(next_piece, orders, strict=True)):
        has_moved = False
        for stage, order in enumerate(orders):
            while next_piece[stage] < len(order):
                piece = order[next_piece[stage]]
                source = stage - 1 if piece.kind == FORWARD else stage + 1
                input_piece = (source, piece.kind, piece.micro_batch)
                if 0 <= source < len(orders) and input_piece not in end_times:
                    break
                free[stage] = max(free[stage], end_times.get(input_piece, 0.0)) + piece.seconds
                end_times[stage, piece.kind, piece.micro_batch] = free[stage]
                next_piece[stage] += 1
                has_moved = True
        if not has_moved:
            raise ValueError(
                f"no stage can go on: {[list(order)[at:][:1] for at, order in zip(next_piece, orders, strict=True)]}"
            )
    return max(free)


def idle_share(orders: Sequence[Sequence[Piece]], seconds: float) -> float:
    """Return the share of `seconds` in which the stages did not compute, over all stages."""
    busy = sum(piece.seconds for order in orders for piece in order)
    return 1 - busy / (len(orders) * seconds)


def summary(orders: Sequence[Sequence[Piece]], step_ms: float) -> dict[str, object]:
    """Return the result of one schedule: how long each stage was busy, and the bubble by formula, replay and clock."""
    stages, micro_batches = len(orders), len(orders[0]) // 2
    by_formula, replayed = 100 * predict_bubble(stages, micro_batches), 100 * idle_share(orders, replay(orders))
    return {
        "busy_ms": [round(1e3 * sum(piece.seconds for piece in order), 3) for order in orders],
        "bubble_predicted_percent": by_formula,
        "bubble_replayed_percent": replayed,
        "bubble_off_points": abs(replayed - by_formula),
        "bubble_wall_percent": 100 * idle_share(orders, step_ms / 1e3),
        "in_flight": max(map(count_in_flight, orders)),
    }


def count_in_flight(order: Sequence[Piece]) -> int:
    """Return the most micro-batches whose activations a stage held at once: after their forward, before their backward."""
    count, peak = 0, 0
    for piece in order:
        count += 1 if piece.kind == FORWARD else -1
        peak = max(peak, count)
    return peak
