"""Simulate work that a processor issues into queues, as into the streams of a GPU. Nothing is measured here.

Each queue does its work in the order of issue, one piece at a time, and different queues work at the same time.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

Time = int | Fraction | float


class Work(NamedTuple):
    """A piece of work in a queue: how long it takes, the indices of the work that must end before it, and when it is issued."""

    queue: str
    seconds: Time
    needs: tuple[int, ...] = ()
    issued: Time = 0


def run_queues(works: Sequence[Work]) -> list[tuple[Time, Time]]:
    """Return when each piece of work begins and ends, in the order of `works`, which is the order of issue.

    Time goes from event to event: when one piece ends, every idle queue begins its next piece, if all that it needs has ended.
    Raises ValueError if the queues wait for each other for ever.
    """
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for place, work in enumerate(works):
        waiting[work.queue].append(place)
    spans: dict[int, tuple[Time, Time]] = {}
    ended: set[int] = set()
    busy: set[str] = set()
    events: list[tuple[Time, int]] = [(work.issued, -1) for work in works]  # -1: something was issued
    heapq.heapify(events)
    while events:
        now, place = heapq.heappop(events)
        if place >= 0:
            ended.add(place)
            busy.discard(works[place].queue)
        if events and events[0][0] == now:
            continue  # first everything that ends at this moment
        for queue, places in waiting.items():
            if queue in busy or not places:
                continue
            work = works[places[0]]
            if work.issued <= now and ended.issuperset(work.needs):
                started = places.popleft()
                spans[started] = now, now + work.seconds
                busy.add(queue)
                heapq.heappush(events, (now + work.seconds, started))
    if len(spans) < len(works):
        heads = [f"{queue}: work {places[0]}" for queue, places in waiting.items() if places]
        raise ValueError(f"no queue can go on: {', '.join(heads)}")
    return [spans[place] for place in range(len(works))]
