"""A step of FSDP on a clock with three queues (gathers, computing, reduces), and which of its messages are exposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from queues import Time, Work, run_queues

GATHER, FORWARD, FREE, BACKWARD, REDUCE = "gather", "forward", "free", "backward", "reduce"
COMPUTING = FORWARD, BACKWARD
Issue = tuple[str, int]
Seconds = Mapping[str, Sequence[Time]]


class Exposure(NamedTuple):
    """The end of a step, the time until then in which nothing is computed, and the most layers in memory at once."""

    end: Time
    exposed: Time
    whole_at_once: int


def list_works(issues: Sequence[Issue], seconds: Seconds, room: int, issue_s: Time) -> tuple[list[Work], list[int]]:
    """Return the issues as work in three queues, and for each issue the place of its work.

    A `free` is not work: its place is that of the preceding computation, at whose end the layer leaves memory. Raises
    ValueError if a layer computes without its weights, or if the layers never fit into the room.
    """
    works: list[Work] = []
    places: list[int] = []
    frees: list[int] = []
    gathers: list[int] = []
    last: dict[Issue, int] = {}
    for number, (kind, layer) in enumerate(issues):
        issued = (number + 1) * issue_s
        if kind == FREE:
            places.append(max(last[computing, layer] for computing in COMPUTING if (computing, layer) in last))
            frees.append(places[-1])
            continue
        places.append(len(works))
        if kind == GATHER:
            gathers.append(len(works))
            works.append(Work(GATHER, seconds[GATHER][layer], (), issued))
        elif kind == REDUCE:
            works.append(Work(REDUCE, seconds[REDUCE][layer], (last[BACKWARD, layer],), issued))
        else:
            if (GATHER, layer) not in last:
                raise ValueError(f"{kind} {layer} has no weights: they were never gathered")
            works.append(Work("compute", seconds[kind][layer], (last[GATHER, layer],), issued))
        last[kind, layer] = places[-1]
    for number, place in enumerate(gathers):
        if number >= room:
            if number - room >= len(frees):
                raise ValueError(f"gather {number} never has room: only {len(frees)} layers are freed")
            works[place] = works[place]._replace(needs=(frees[number - room],))
    return works, places


def simulate_step(issues: Sequence[Issue], seconds: Seconds, room: int, issue_s: Time = 0) -> list[tuple[Time, Time]]:
    """Return when each issue begins and ends. A `free` begins and ends when its layer leaves memory."""
    works, places = list_works(issues, seconds, room, issue_s)
    spans = run_queues(works)
    return [(spans[place][1], spans[place][1]) if kind == FREE else spans[place]
            for (kind, _), place in zip(issues, places, strict=True)]  # fmt: skip


def measure_exposure(issues: Sequence[Issue], spans: Sequence[tuple[Time, Time]]) -> Exposure:
    """Return the end, exposure and memory of a timeline.

    A layer is in memory from the beginning of its gather until its free.
    """
    end = max(span[1] for span in spans)
    busy = sum(span[1] - span[0] for (kind, _), span in zip(issues, spans, strict=True) if kind in COMPUTING)
    changes = [(span[0], 1) for (kind, _), span in zip(issues, spans, strict=True) if kind == GATHER]
    changes += [(span[0], -1) for (kind, _), span in zip(issues, spans, strict=True) if kind == FREE]
    count = most = 0
    for _, change in sorted(changes):  # at one moment, a layer is freed before the next one arrives
        count += change
        most = max(most, count)
    return Exposure(end, end - busy, most)


def predict_forward(layers: int, gather: Time, forward: Time, room: int) -> Time:
    """Return the end of a forward pass of equal layers, if the processor is never late.

    With room for one layer, nothing overlaps. With more, the longer of the two queues decides, and the shorter adds one piece.
    """
    if room == 1:
        return layers * (gather + forward)
    return layers * max(gather, forward) + min(gather, forward)
