"""Simulate streams and events: the orders that they permit, their times, and the operations that no event orders.

A device has three engines: one copies to it, one computes, one copies back. Each operation is in a stream. Two operations
are ordered if they are in the same stream, or if an event orders them; nothing else does. The operations that a program has
queued determine

    its time     `Replay.units`: of the operations that may begin, every engine takes the one that was queued first
    hazards      `find_hazards`: two operations that use the same memory, at least one of them writing, without an order
    values       `count_wrong`: the operations executed on numbers, in the most unfavourable order that is permitted

`gpu_streams.py` has the same methods for a GPU.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

COPY_IN, COMPUTE, COPY_OUT = ENGINES = ("copy in", "compute", "copy out")
MAX_ORDERS = 16  # of the orders in which a hazard shows: one is enough for a wrong value, nearly always the first
MAX_OF_CHUNK = 100  # operations; three are enough
NUMBERS = 16  # of each chunk that is executed
UNTOUCHED = -1.0  # the value of memory that nothing has been copied to
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Stream:
    """A queue of operations. Streams are numbered in the order of their creation."""

    number: int


@dataclass(frozen=True)
class Event:
    """A point in a stream: everything that was in the stream when the event was recorded.

    `after`: the last operation in the stream at that time, or None if the stream was empty.
    `queued`: the number of operations in all streams at that time.
    """

    stream: int
    after: int | None
    queued: int


@dataclass(frozen=True)
class Operation:
    """One operation that the host has queued.

    `waits`: the operations that must end first: the previous one in its stream, and those before the `events` that its stream
    waited for.
    `chunk`: None for a compute on a buffer that got no chunk.
    """

    number: int
    engine: str
    stream: int
    buffer: int
    chunk: int | None
    units: float
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    waits: tuple[int, ...]
    events: tuple[Event, ...]

    def __str__(self) -> str:
        chunk = "no chunk" if self.chunk is None else f"chunk {self.chunk}"
        place = {COPY_IN: "into", COMPUTE: "in", COPY_OUT: "out of"}[self.engine]
        return f"{self.engine.split()[0]} {chunk} {place} buffer {self.buffer}"


@dataclass(frozen=True)
class Hazard:
    """Two operations without an order, and the memory that both use. `first` was queued before `second`."""

    first: Operation
    second: Operation
    memory: str

    def __str__(self) -> str:
        return f'no stream or event orders "{self.first}" and "{self.second}"'


class ReplayedDevice:
    """The device for which a pipeline is written. The host has `chunks` chunks, of which `buffers` fit on the device.

    `units` are the durations of a copy in, a compute and a copy out.
    """

    def __init__(self, chunks: int, buffers: int, units: Sequence[float] = (1.0, 1.0, 1.0)) -> None:
        self._chunks, self._buffers, self._units = chunks, buffers, dict(zip(ENGINES, units, strict=True))
        self.operations: list[Operation] = []
        self.streams = 0
        self._last: dict[int, int] = {}  # by stream: its last operation
        self._events: dict[int, list[Event]] = {}  # by stream: those that its next operation waits for
        self._inside: dict[int, int] = {}  # by buffer: the chunk that was last queued into it

    @property
    def buffers(self) -> int:
        """Return how many chunks fit on the device."""
        return self._buffers

    @property
    def chunks(self) -> int:
        """Return how many chunks the host has."""
        return self._chunks

    @property
    def units(self) -> dict[str, float]:
        """Return the time that each engine takes for a chunk, by the engine's name."""
        return dict(self._units)

    def stream(self) -> Stream:
        """Return a new stream: a queue in which each operation waits for the one before it."""
        self.streams += 1
        return Stream(self.streams - 1)

    def copy_in(self, stream: Stream, chunk: int, buffer: int) -> None:
        """Queue a copy of the host's input `chunk` into `buffer`. Raises ValueError if one of them does not exist."""
        self._check(stream, buffer, chunk)
        self._inside[buffer] = chunk
        self._queue(COPY_IN, stream, buffer, (f"input {chunk}",), (f"buffer {buffer}",))

    def compute(self, stream: Stream, buffer: int) -> None:
        """Queue the kernel that works on the content of `buffer`, in place."""
        self._check(stream, buffer)
        self._queue(COMPUTE, stream, buffer, (f"buffer {buffer}",), (f"buffer {buffer}",))

    def copy_out(self, stream: Stream, buffer: int, chunk: int) -> None:
        """Queue a copy of `buffer` to the host's output `chunk`."""
        self._check(stream, buffer, chunk)
        self._queue(COPY_OUT, stream, buffer, (f"buffer {buffer}",), (f"output {chunk}",), chunk)

    def record(self, stream: Stream) -> Event:
        """Return an event that marks everything in `stream` now, but nothing that is queued later."""
        self._check(stream)
        return Event(stream.number, self._last.get(stream.number), len(self.operations))

    def wait(self, stream: Stream, event: Event) -> None:
        """Make everything queued in `stream` from now on wait until everything before `event` has ended. The host does not
        wait."""
        self._check(stream)
        if not isinstance(event, Event):
            raise TypeError(f"wait: the second argument must be an event of device.record, not {type(event).__name__}")
        self._events.setdefault(stream.number, []).append(event)

    def _check(self, stream: Stream, buffer: int = 0, chunk: int = 0) -> None:
        if not isinstance(stream, Stream):
            raise TypeError(f"the stream must come from device.stream(), but it was {type(stream).__name__}")
        if buffer not in range(self.buffers):
            raise ValueError(f"buffer {buffer}: there are {self.buffers}, numbered from 0")
        if chunk not in range(self.chunks):
            raise ValueError(f"chunk {chunk}: there are {self.chunks}, numbered from 0")

    def _queue(
        self,
        engine: str,
        stream: Stream,
        buffer: int,
        reads: tuple[str, ...],
        writes: tuple[str, ...],
        chunk: int | None = None,
    ) -> None:
        events = tuple(self._events.pop(stream.number, ()))
        predecessors = [self._last.get(stream.number), *(event.after for event in events)]
        waits = tuple(sorted({number for number in predecessors if number is not None}))
        chunk = self._inside.get(buffer) if chunk is None else chunk
        number = len(self.operations)
        if number == MAX_OF_CHUNK * self.chunks:
            raise ValueError(f"{number:,} operations are queued for {self.chunks} chunks: does the loop end?")
        units = self.units[engine]
        self.operations.append(Operation(number, engine, stream.number, buffer, chunk, units, reads, writes, waits, events))
        self._last[stream.number] = number


@dataclass(frozen=True)
class Replay:
    """When each operation begins and ends, in time units, and when the last operation has ended."""

    spans: tuple[tuple[Operation, float, float], ...]
    units: float


def replay(operations: Sequence[Operation]) -> Replay:
    """Return the times of all operations. Of the operations that may begin, an engine takes the one that was queued first."""
    free = dict.fromkeys(ENGINES, 0.0)
    ends: dict[int, float] = {}
    spans = []
    for operation, earliest in _take_in_order(operations, free, ends):
        ends[operation.number] = free[operation.engine] = earliest + operation.units
        spans.append((operation, earliest, ends[operation.number]))
    return Replay(tuple(spans), max(ends.values(), default=0.0))


def _take_in_order(
    operations: Sequence[Operation], free: dict[str, float], ends: dict[int, float]
) -> Iterator[tuple[Operation, float]]:
    """Yield each operation with the time at which it begins. Before it takes the next one, the caller writes the
    end of the operation into `free` and `ends`."""
    followers, missing = _link(operations)
    ready = [(0.0, number) for number, count in enumerate(missing) if count == 0]
    while ready:
        earliest, number = heapq.heappop(ready)
        operation = operations[number]
        if earliest < free[operation.engine]:  # its engine has become busy since; try again when it is free
            heapq.heappush(ready, (free[operation.engine], number))
            continue
        yield operation, earliest
        for follower in followers[number]:
            missing[follower] -= 1
            if missing[follower] == 0:
                heapq.heappush(ready, (max(ends[predecessor] for predecessor in operations[follower].waits), follower))


def _link(operations: Sequence[Operation]) -> tuple[list[list[int]], list[int]]:
    """Return, for each operation, the operations that wait for it, and how many it waits for."""
    followers: list[list[int]] = [[] for _ in operations]
    for operation in operations:
        for predecessor in operation.waits:
            followers[predecessor].append(operation.number)
    return followers, [len(operation.waits) for operation in operations]


def find_hazards(operations: Sequence[Operation]) -> list[Hazard]:
    """Return every pair of operations that use the same memory, with at least one writing, and that no stream or event orders.

    The pairs are sorted by the second operation's place in the queue.
    """
    ancestors = _find_ancestors(operations)
    users: dict[str, list[Operation]] = {}
    for operation in operations:
        for memory in dict.fromkeys(operation.reads + operation.writes):
            users.setdefault(memory, []).append(operation)
    hazards = [
        Hazard(first, second, memory)
        for memory, using in users.items()
        for at, second in enumerate(using)
        for first in using[:at]
        if (memory in first.writes or memory in second.writes) and not ancestors[second.number] >> first.number & 1
    ]
    return sorted(hazards, key=lambda hazard: (hazard.second.number, hazard.first.number))


def _find_ancestors(operations: Sequence[Operation]) -> list[int]:
    """Return, for each operation, those that are certain to end before it begins, as the bits of a number."""
    ancestors: list[int] = []
    for operation in operations:
        bits = 0
        for number in operation.waits:
            bits |= ancestors[number] | 1 << number
        ancestors.append(bits)
    return ancestors


def list_orders(operations: Sequence[Operation], hazards: Sequence[Hazard]) -> Iterator[list[int]]:
    """Yield orders of execution that streams and events permit.

    The first order always takes the latest operation. In the others, the second operation of a hazard comes before the first
    one.
    """
    count = len(operations)
    yield _order(operations, [-number for number in range(count)])
    ancestors = _find_ancestors(operations)
    for hazard in hazards[: MAX_ORDERS - 1]:
        earlier = ancestors[hazard.second.number] | 1 << hazard.second.number
        yield _order(operations, [0 if earlier >> number & 1 else 1 for number in range(count)])


def _order(operations: Sequence[Operation], ranks: Sequence[int]) -> list[int]:
    """Return a permitted order: of the operations that may begin, the one of the lowest rank always comes next."""
    followers, missing = _link(operations)
    ready = [(ranks[number], number) for number, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(number)
        for follower in followers[number]:
            missing[follower] -= 1
            if missing[follower] == 0:
                heapq.heappush(ready, (ranks[follower], follower))
    return order


def count_wrong(operations: Sequence[Operation], hazards: Sequence[Hazard], chunks: int, buffers: int) -> int:
    """Return how many of the host's chunks are wrong after the worst of `list_orders`. The kernel computes 2x + 1."""
    reference = [[2 * number + 1 for number in _make_input(chunk)] for chunk in range(chunks)]
    largest_count = 0
    for order in list_orders(operations, hazards):
        outputs = _execute([operations[number] for number in order], chunks, buffers)
        largest_count = max(
            largest_count, sum(output != right_output for output, right_output in zip(outputs, reference, strict=True))
        )
        if largest_count:
            break
    return largest_count


def _make_input(chunk: int) -> list[float]:
    return [float(NUMBERS * chunk + place) for place in range(NUMBERS)]


def _execute(operations: Sequence[Operation], chunks: int, buffers: int) -> list[list[float]]:
    """Execute the operations on numbers, one after the other in this order, and return the host's outputs."""
    memory = [[UNTOUCHED] * NUMBERS for _ in range(buffers)]
    outputs = [[UNTOUCHED] * NUMBERS for _ in range(chunks)]
    for operation in operations:
        numbers = memory[operation.buffer]
        if operation.engine == COPY_IN:
            numbers[:] = _make_input(int(operation.reads[0].split()[1]))
        elif operation.engine == COMPUTE:
            numbers[:] = [2 * number + 1 for number in numbers]
        else:
            outputs[int(operation.writes[0].split()[1])][:] = numbers
    return outputs


def best_units(chunks: int, units: Sequence[float], buffers: int) -> float:
    """Return the shortest time for the same work in any order.

    Each engine takes the chunks one after the other. A chunk goes from engine to engine, and is copied in when a buffer is
    free. With three or more buffers, the time is chunks * max(units) + sum(units) - max(units).
    """
    free = [0.0] * len(units)
    leave_times: list[float] = []  # by chunk: when it has left its buffer
    for chunk in range(chunks):
        at = leave_times[chunk - buffers] if chunk >= buffers else 0.0
        for engine, duration in enumerate(units):
            at = free[engine] = max(at, free[engine]) + duration
        leave_times.append(at)
    return leave_times[-1]


def overlap_percent(took: float, sequential: float, ideal_ms: float) -> float:
    """Return the time that was saved as a percentage of the time that overlapping can save."""
    return round(100 * (sequential - took) / (sequential - ideal_ms), 6) + 0.0  # so that nothing is -0


def draw(spans: Replay, until: float, columns: int = 60) -> str:
    """Return the timeline as text: a row for each engine, with the chunk's number while it works and a dot while it is idle."""
    rows = []
    for engine in ENGINES:
        row = ["."] * columns
        for operation, begin, end in spans.spans:
            if operation.engine == engine:
                mark = "?" if operation.chunk is None else DIGITS[operation.chunk % len(DIGITS)]
                first, last = (round(at / until * columns) for at in (begin, end))
                row[first:last] = mark * (min(last, columns) - first)
        rows.append(f"{engine:<9} {''.join(row)}")
    return "\n".join(rows)
