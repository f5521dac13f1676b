"""Published pipeline schedules as data: the slots of every rank, in order. Each rank follows its own list."""

from __future__ import annotations

from collections.abc import Iterator

from pieces import BACKWARD, FORWARD, INPUTS, WEIGHTS, Piece, Slot

Orders = list[list[Slot]]


def order_gpipe(ranks: int, micro_batches: int) -> Orders:
    """Return GPipe: all micro-batches forward, then all backward. Huang et al., 2019."""
    return [[(Piece(kind, rank, number),) for kind in (FORWARD, BACKWARD) for number in range(micro_batches)]
            for rank in range(ranks)]  # fmt: skip


def order_1f1b(ranks: int, micro_batches: int) -> Orders:
    """Return 1F1B, which is the interleaved schedule with one stage per rank. Narayanan et al., 2021, section 2.2."""
    return order_interleaved(ranks, micro_batches, 1)


def order_interleaved(ranks: int, micro_batches: int, chunks: int) -> Orders:
    """Return the interleaved schedule, in which rank r of p has the stages r, p + r, 2p + r and so on: `chunks` of them.

    With more than one, `micro_batches` must be a multiple of `ranks`. Narayanan et al., 2021, section 2.2.
    """
    orders = []
    for rank in range(ranks):
        total = micro_batches * chunks
        warm_up = min((ranks - rank - 1) * (2 if chunks > 1 else 1) + (chunks - 1) * ranks, total)
        slots = [_find_piece(FORWARD, place, rank, ranks, chunks) for place in range(warm_up)]
        for place in range(total - warm_up):
            slots.append(_find_piece(FORWARD, warm_up + place, rank, ranks, chunks))
            slots.append(_find_piece(BACKWARD, place, rank, ranks, chunks))
        slots += [_find_piece(BACKWARD, place, rank, ranks, chunks) for place in range(total - warm_up, total)]
        orders.append(slots)
    return orders


def _find_piece(kind: str, place: int, rank: int, ranks: int, chunks: int) -> Slot:
    """Return piece number `place` of its kind. The order is `ranks` micro-batches on one stage, then as many on the next."""
    if chunks == 1:
        return (Piece(kind, rank, place),)
    chunk = place // ranks % chunks
    chunk = chunk if kind == FORWARD else chunks - 1 - chunk
    return (Piece(kind, chunk * ranks + rank, place // (ranks * chunks) * ranks + place % ranks),)


def order_zero_bubble_v(ranks: int, micro_batches: int) -> Orders:
    """Return ZB-V: rank r of p has the stages r and 2p - 1 - r, so that the first rank also computes the loss.

    Qi et al., 2023, section 6, in the order of torch's ScheduleZBVZeroBubble. Fewer micro-batches than 2p - 1 leave gaps.
    """
    numbers = max(micro_batches, 2 * ranks - 1)
    orders = [
        [*(stage := _ZeroBubbleV(rank, ranks, numbers)).list_first_slots(), *stage.list_last_slots()] for rank in range(ranks)
    ]
    return [[slot for slot in order if slot[0].micro_batch < micro_batches] for order in orders]


class _ZeroBubbleV:
    """One rank of ZB-V. Its second stage is nearer to the loss."""

    def __init__(self, rank: int, ranks: int, micro_batches: int) -> None:
        self._rank, self._ranks, self._micro_batches = rank, ranks, micro_batches
        self._counts = {(kind, is_second): 0 for kind in (FORWARD, INPUTS, WEIGHTS) for is_second in (False, True)}

    def _take(self, kind: str, is_second: bool) -> Slot:
        number = self._counts[kind, is_second]
        self._counts[kind, is_second] += 1
        return (Piece(kind, 2 * self._ranks - 1 - self._rank if is_second else self._rank, number),)

    def _take_backward(self, is_second: bool) -> list[Slot]:
        return [self._take(INPUTS, is_second), self._take(WEIGHTS, is_second)]

    def list_first_slots(self) -> Iterator[Slot]:
        """Yield the slots until the last forward."""
        for _ in range(2 * (self._ranks - self._rank) - 1):
            yield self._take(FORWARD, False)
        for _ in range(self._rank):
            yield self._take(FORWARD, True)
            yield self._take(FORWARD, False)
        for _ in range(self._ranks - self._rank):
            yield self._take(FORWARD, True)
            yield from self._take_backward(True)
        while self._counts[FORWARD, True] < self._micro_batches:
            if self._counts[FORWARD, False] < self._micro_batches:
                yield self._take(FORWARD, False)
            yield from self._take_backward(False)
            yield self._take(FORWARD, True)
            yield from self._take_backward(True)

    def list_last_slots(self) -> Iterator[Slot]:
        """Yield the slots after the last forward."""
        for _ in range(self._rank):
            yield self._take(INPUTS, False)
            yield self._take(INPUTS, True)
        for _ in range(self._ranks - self._rank):
            yield from self._take_backward(False)
        for is_second in (True, False):
            while self._counts[WEIGHTS, is_second] < self._micro_batches:
                yield self._take(WEIGHTS, is_second)


def order_dual_pipe(ranks: int, micro_batches: int) -> Orders:
    """Return DualPipe: half of the micro-batches begin on the first rank, the others on the last one.

    Rank r of p computes stage r for the first half and stage p - 1 - r for the second, so it holds the weights of both stages.
    `ranks` and `micro_batches` are even, with at least 2p micro-batches. The eight phases follow DualPipe's README.
    """
    return [list(_DualPipe(rank, ranks, micro_batches).list_slots()) for rank in range(ranks)]


class _DualPipe:
    """One rank of DualPipe. Direction 0 is the one in which this rank is nearer to the beginning."""

    def __init__(self, rank: int, ranks: int, micro_batches: int) -> None:
        self._rank, self._ranks, self._micro_batches = rank, ranks, micro_batches
        self._distance = min(rank, ranks - 1 - rank)
        self._counts: dict[tuple[str, int], int] = {}
        self._delayed: list[Slot] = []

    def _take(self, kind: str, direction: int) -> Piece:
        phase = BACKWARD if kind == INPUTS else kind
        number = self._counts.get((phase, direction), 0)
        self._counts[phase, direction] = number + 1
        is_up = direction ^ (self._rank >= self._ranks // 2)
        stage = self._ranks - 1 - self._rank if is_up else self._rank
        return Piece(kind, stage, is_up * (self._micro_batches // 2) + number)

    def _take_inputs(self, direction: int) -> Slot:
        piece = self._take(INPUTS, direction)
        self._delayed.append((piece._replace(kind=WEIGHTS),))
        return (piece,)

    def _take_pair(self, forward: int, backward: int) -> Slot:
        return self._take(FORWARD, forward), self._take(BACKWARD, backward)

    def list_slots(self) -> Iterator[Slot]:
        """Yield the slots of this rank."""
        distance, outer = self._distance, self._ranks // 2 - self._distance - 1
        for _ in range(2 * outer):
            yield (self._take(FORWARD, 0),)
        for _ in range(distance + 1):
            yield (self._take(FORWARD, 0),)
            yield (self._take(FORWARD, 1),)
        for _ in range(outer):
            yield self._take_inputs(1)
            yield self._delayed.pop(0)
            yield (self._take(FORWARD, 1),)
        for number in range(self._micro_batches // 2 - self._ranks + distance + 1):
            if number == 0 and outer == 0:
                yield (self._take(FORWARD, 0),)
                yield (self._take(BACKWARD, 1),)
            else:
                yield self._take_pair(0, 1)
            yield self._take_pair(1, 0)
        for _ in range(outer):
            yield (self._take(BACKWARD, 1),)
            yield self._take_pair(1, 0)
        yield from self._list_last_slots(outer)

    def _list_last_slots(self, outer: int) -> Iterator[Slot]:
        middle, is_odd = divmod(self._distance + 1, 2)
        for number in range(self._distance + 1):
            splits = number > middle or (number == middle and not is_odd)
            yield self._take_inputs(1) if splits else (self._take(BACKWARD, 1),)
            yield self._take_inputs(0) if number >= middle else (self._take(BACKWARD, 0),)
        for _ in range(outer):
            yield self._delayed.pop(0)
            yield self._take_inputs(0)
        yield from self._delayed
