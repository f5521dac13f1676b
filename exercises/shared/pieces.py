"""Simulate a pipeline whose backward pass has two pieces: gradients of the inputs, and gradients of the weights.

Nothing is measured here: the clock gets the time of each piece. With whole numbers or fractions its results are exact. The
course's `bubble.py` has the same clock for a backward pass in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

FORWARD, BACKWARD, INPUTS, WEIGHTS = "forward", "backward", "inputs", "weights"
KINDS = FORWARD, BACKWARD, INPUTS, WEIGHTS

Time = int | Fraction | float


class Piece(NamedTuple):
    """One micro-batch's way through one stage.

    `inputs` computes the gradient of the stage's inputs, `weights` that of its weights, and `backward` both.
    """

    kind: str
    stage: int
    micro_batch: int


Slot = tuple[Piece, ...]  # one piece, or two that overlap
Order = Sequence[Slot]  # all slots of one rank


@dataclass(frozen=True)
class Times:
    """The time of each piece, in any unit. `pair` is that of a forward and a backward that overlap (by default their sum)."""

    forward: Time
    inputs: Time
    weights: Time
    pair: Time | None = None

    def of(self, slot: Slot) -> Time:
        """Return the time that a slot takes."""
        if len(slot) == 2:
            return self.step if self.pair is None else self.pair
        backward = self.inputs + self.weights
        return {FORWARD: self.forward, INPUTS: self.inputs, WEIGHTS: self.weights, BACKWARD: backward}[slot[0].kind]

    @property
    def step(self) -> Time:
        """Return the time of one micro-batch on one stage."""
        return self.forward + self.inputs + self.weights


class Span(NamedTuple):
    """A slot, and when it begins and ends on the simulated clock."""

    begin: Time
    end: Time
    slot: Slot


@dataclass(frozen=True)
class Clock:
    """The spans of each rank, in order."""

    spans: list[list[Span]]

    @property
    def end(self) -> Time:
        """Return when the last rank has finished."""
        return max(span.end for row in self.spans for span in row)

    @property
    def busy(self) -> list[Time]:
        """Return how long each rank computes."""
        return [sum(span.end - span.begin for span in row) for row in self.spans]

    @property
    def bubble(self) -> Time:
        """Return the idle time of the least busy rank until the last rank has finished."""
        return self.end - min(self.busy)


def simulate(orders: Sequence[Order], stages: int, seconds: Callable[[Slot], Time]) -> Clock:
    """Return when each slot begins and ends if each rank computes its slots in order and sending takes no time.

    `stages` counts the parts of the model: a rank may have several, and a slot says which one it computes. A slot begins when
    its rank is free and all that it needs is there. Raises ValueError with the waiting slots if no rank can go on.
    """
    ends: dict[Piece, Time] = {}
    free: list[Time] = [0] * len(orders)
    spans: list[list[Span]] = [[] for _ in orders]
    while any(len(row) < len(order) for row, order in zip(spans, orders, strict=True)):
        has_moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                slot = order[len(spans[rank])]
                needs = [source for piece in slot for source in list_needs(piece, stages) if source not in slot]
                if any(source not in ends for source in needs):
                    break
                begin = max([free[rank], *(ends[source] for source in needs)])
                free[rank] = begin + seconds(slot)
                spans[rank].append(Span(begin, free[rank], slot))
                for piece in slot:
                    parts = (INPUTS, WEIGHTS) if piece.kind == BACKWARD else (piece.kind,)
                    ends.update((piece._replace(kind=kind), free[rank]) for kind in parts)
                has_moved = True
        if not has_moved:
            raise ValueError(f"no rank can go on: {'; '.join(_list_waiting(orders, spans))}")
    return Clock(spans)


def list_needs(piece: Piece, stages: int) -> list[Piece]:
    """Return the pieces that must end before this one begins."""
    kind, stage, _ = piece
    if kind == FORWARD:
        return [piece._replace(stage=stage - 1)] if stage > 0 else []
    if kind == WEIGHTS:
        return [piece._replace(kind=INPUTS)]
    later = [piece._replace(kind=INPUTS, stage=stage + 1)] if stage < stages - 1 else []
    return [piece._replace(kind=FORWARD), *later]


def count_held(order: Order, until: str = WEIGHTS) -> int:
    """Return the largest number of forward pieces whose activations a rank holds at once, until the piece `until` is done.

    Activations inside a stage are needed until `weights`. Those that only the gradient of the inputs needs are freed
    earlier.
    """
    count = max_count = 0
    for slot in order:
        count += sum(piece.kind == FORWARD for piece in slot)
        max_count = max(max_count, count)
        count -= sum(piece.kind in (until, BACKWARD) for piece in slot)
    return max_count


def count_messages(orders: Sequence[Order], stages: int) -> int:
    """Return how many activations and gradients go from one rank to another."""
    places = {piece: rank for rank, order in enumerate(orders) for slot in order for piece in slot}
    whole = [(piece, rank) for piece, rank in places.items() if piece.kind == BACKWARD]
    places |= {piece._replace(kind=kind): rank for piece, rank in whole for kind in (INPUTS, WEIGHTS)}
    return sum(places[source] != rank for piece, rank in places.items() if piece.kind in (FORWARD, INPUTS)
               for source in list_needs(piece, stages))  # fmt: skip


def repeat(orders: Sequence[Order], steps: int, micro_batches: int) -> list[list[Slot]]:
    """Return the orders of several steps, one after the other, in which no rank waits for all others between two steps."""
    return [[tuple(piece._replace(micro_batch=piece.micro_batch + step * micro_batches) for piece in slot)
             for step in range(steps) for slot in order] for order in orders]  # fmt: skip


def predict_bubble_time(schedule: str, ranks: int, times: Times, chunks: int = 1) -> Time:
    """Return the bubble of one step on `ranks` ranks by its published formula, in the unit of `times`.

    `times` are those of one micro-batch on all layers of a rank. Forward takes F, the gradient of the inputs I, that of the
    weights W, and B = I + W. p stands for `ranks`, v for `chunks`, the stages of a rank with `interleaved`.

    - gpipe, 1f1b: (p - 1)(F + B). Huang et al., "GPipe", 2019, section 2.3; Narayanan et al., 2021, section 2.2.
    - interleaved: (p - 1)(F + B) / v, from the same section, if the micro-batches are a multiple of p.
    - zb-h1: (p - 1)(F + B - 2W) if W is at most F and I, from Qi et al., "Zero Bubble Pipeline Parallelism", 2023, section 2.
      A longer W fills no more of a gap, so it counts as the shorter one of F and I.
    - zb-v: 0, from section 6 there. It needs F = I = W and an optimizer step that waits for no other stage: `simulate` shows
      what one step alone leaves.
    - dualpipe: (p / 2 - 1)(F&B + B - 3W), from the README of DualPipe. F&B is a pair. It needs 2p micro-batches, and is exact
      if F = I.

    Raises ValueError for another schedule.
    """
    backward = times.inputs + times.weights
    if schedule in ("gpipe", "1f1b"):
        return (ranks - 1) * (times.forward + backward)
    if schedule == "interleaved":
        return Fraction(ranks - 1, chunks) * Fraction(times.forward + backward)
    if schedule == "zb-h1":
        return (ranks - 1) * (times.forward + times.inputs - min(times.weights, times.forward, times.inputs))
    if schedule == "zb-v":
        return 0
    if schedule == "dualpipe":
        pair = times.step if times.pair is None else times.pair
        return (ranks // 2 - 1) * (pair + backward - 3 * times.weights)
    raise ValueError(f"there is no formula for {schedule}")


def predict_held(schedule: str, ranks: int, micro_batches: int, chunks: int = 1) -> Fraction:
    """Return how many micro-batches the fullest rank holds, each with all layers of the rank, until their weights are done.

    Sources as for `predict_bubble_time`. Raises ValueError for a schedule that is not in the list there.
    """
    if schedule == "interleaved":
        pieces = 2 * (ranks - 1) + (chunks - 1) * ranks + 1
        return Fraction(min(pieces, micro_batches * chunks), chunks)
    room = {"gpipe": micro_batches, "1f1b": ranks, "zb-h1": ranks, "zb-v": ranks, "dualpipe": ranks + 1}
    if schedule not in room:
        raise ValueError(f"there is no formula for {schedule}")
    return Fraction(min(room[schedule], micro_batches))


def _list_waiting(orders: Sequence[Order], spans: Sequence[Sequence[Span]]) -> list[str]:
    waiting = [(order, len(row)) for order, row in zip(orders, spans, strict=True) if len(row) < len(order)]
    return [" and ".join(f"stage {piece.stage}: {piece.kind} {piece.micro_batch}" for piece in order[place])
            for order, place in waiting]  # fmt: skip
