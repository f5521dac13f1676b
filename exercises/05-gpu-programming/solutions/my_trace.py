"""A solution of 5.11: it unites intervals, finds ranges by the launch, and charges idle time to the call before it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

Event = dict[str, Any]
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def select(events: list[Event], *categories: str) -> list[Event]:
    """Return the events of these categories in the order of their starts."""
    return sorted((event for event in events if event.get("cat") in categories), key=lambda event: event["ts"])


def unite(events: list[Event]) -> list[tuple[float, float]]:
    """Return the intervals in which any of the events runs."""
    spans: list[tuple[float, float]] = []
    for event in sorted(events, key=lambda event: event["ts"]):
        start, end = event["ts"], event["ts"] + event["dur"]
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return spans


def length(spans: list[tuple[float, float]]) -> float:
    """Return the total length of the intervals."""
    return sum(end - start for start, end in spans)


def exposed(events: list[Event], hiding: list[Event]) -> float:
    """Return how long `events` run while none of `hiding` runs."""
    return length(unite(events + hiding)) - length(unite(hiding))


def is_communication(event: Event) -> bool:
    """Return whether the work is a kernel of NCCL."""
    return str(event["name"]).startswith("nccl")


def busy_percent(events: list[Event]) -> float:
    """Return the share of the time in which the GPU works."""
    spans = unite(select(events, *WORK))
    return 100 * length(spans) / (spans[-1][1] - spans[0][0])


def exposed_us(events: list[Event]) -> float:
    """Return the time in which the GPU only communicates."""
    work = select(events, *WORK)
    return exposed(
        [event for event in work if is_communication(event)], [event for event in work if not is_communication(event)]
    )


def find_causes(events: list[Event]) -> list[tuple[float, Event, Event | None]]:
    """Return for each gap its length, the launch that ended it, and the call on the launch's thread before that."""
    last: dict[int, Event] = {}  # by thread
    launches: dict[int, tuple[Event, Event | None]] = {}
    for call in select(events, "cuda_runtime"):
        launches[call["args"].get("correlation")] = call, last.get(call["tid"])
        last[call["tid"]] = call
    work = select(events, *WORK)
    first = {event["ts"]: event for event in reversed(work)}
    spans = unite(work)
    return [(start - end, *launches[first[start]["args"]["correlation"]]) for (_, end), (start, _) in pairwise(spans)]


def longest_gap(events: list[Event]) -> tuple[float, str]:
    """Return the longest time without work, and the call before the launch that ended it."""
    gap, _, before = max(find_causes(events), key=lambda item: item[0], default=(0.0, {}, None))
    return gap, before["name"] if before else ""


def find_range(events: list[Event], launch: Event) -> str:
    """Return the innermost range on the launch's thread that contains the launch."""
    around = [
        item
        for item in events
        if item.get("cat") == "user_annotation"
        and item["tid"] == launch["tid"]
        and item["ts"] <= launch["ts"] < item["ts"] + item["dur"]
    ]
    return str(min(around, key=lambda item: item["dur"])["name"]) if around else ""


def range_us(events: list[Event]) -> dict[str, float]:
    """Return the time of the work that each range launched."""
    launches = {call["args"].get("correlation"): call for call in select(events, "cuda_runtime")}
    ranges = select(events, "user_annotation")
    sums: Counter[str] = Counter()
    for event in select(events, *WORK):
        sums[find_range(ranges, launches[event["args"]["correlation"]])] += event["dur"]
    return dict(sums)


def name_fault(events: list[Event]) -> str:
    """Return the fault that costs the most time, if any costs a tenth of it."""
    work, ranges = select(events, *WORK), select(events, "user_annotation")
    names = {event["args"]["correlation"]: event["name"] for event in work}
    pageable = [event for event in work if "Pageable" in event["name"]]
    costs = Counter({
        "exposed all-reduce": exposed_us(events),
        "pageable copy": exposed(pageable, [event for event in work if event not in pageable]),
    })  # fmt: skip
    for gap, launch, before in find_causes(events):
        if before and "Synchronize" in before["name"]:
            costs["sync in the loop"] += gap
        elif before and "Pageable" in names.get(before["args"].get("correlation"), ""):
            costs["pageable copy"] += gap
        else:
            costs["unfused optimizer" if find_range(ranges, launch) == "optimizer" else "many small kernels"] += gap
    fault, cost = costs.most_common(1)[0]
    start, end = work[0]["ts"], max(event["ts"] + event["dur"] for event in work)
    return fault if cost > (end - start) / 10 else "none"
