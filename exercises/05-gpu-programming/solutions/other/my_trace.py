"""Another solution of 5.11: it sweeps once over all beginnings and ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Event = dict[str, Any]


def kind(event: Event) -> str:
    """Return the kind of work: communication, a copy from pageable memory, or other work; "" for events that are not work."""
    if event.get("cat") not in {"kernel", "gpu_memcpy", "gpu_memset"}:
        return ""
    if event["name"].startswith("nccl"):
        return "communication"
    return "pageable" if "Pageable" in event["name"] else "work"


def sweep(events: list[Event]) -> Iterator[tuple[float, float, set[str]]]:
    """Yield intervals with the kinds of work that run in each."""
    edges = []
    for event in events:
        if word := kind(event):
            edges += [(event["ts"], 1, word), (event["ts"] + event["dur"], -1, word)]
    edges.sort()
    counts = {"communication": 0, "pageable": 0, "work": 0}
    for (start, step, word), (end, _, _) in pairwise(edges):
        counts[word] += step
        if end > start:
            yield start, end, {name for name, count in counts.items() if count}


def busy_percent(events: list[Event]) -> float:
    """Return the share of the time in which the GPU works."""
    intervals = list(sweep(events))
    return 100 * sum(end - start for start, end, words in intervals if words) / (intervals[-1][1] - intervals[0][0])


def exposed_us(events: list[Event]) -> float:
    """Return the time in which the GPU only communicates."""
    return sum(end - start for start, end, words in sweep(events) if words == {"communication"})


def thread_calls(events: list[Event]) -> dict[int, tuple[Event, Event | None]]:
    """Return, by correlation, each launch and the call before it on its thread."""
    calls = sorted(
        (event for event in events if event.get("cat") == "cuda_runtime"), key=lambda event: (event["tid"], event["ts"])
    )
    pairs = {}
    for before, call in zip([None, *calls], calls, strict=False):
        is_same_thread = before is not None and before["tid"] == call["tid"]
        if "correlation" in call["args"]:
            pairs[call["args"]["correlation"]] = call, before if is_same_thread else None
    return pairs


def gaps(events: list[Event]) -> Iterator[tuple[float, Event, Event | None]]:
    """Yield the length of each gap, the launch that ends it, and the call before that launch."""
    pairs = thread_calls(events)
    for start, end, words in sweep(events):
        if not words:
            after = next(event for event in events if kind(event) and event["ts"] == end)
            yield end - start, *pairs[after["args"]["correlation"]]


def longest_gap(events: list[Event]) -> tuple[float, str]:
    """Return the longest time without work, and the call before the launch that ended it."""
    longest_us, name = 0.0, ""
    for gap, _, before in gaps(events):
        if gap > longest_us:
            longest_us, name = gap, before["name"] if before else ""
    return longest_us, name


def name_range(events: list[Event], launch: Event) -> str:
    """Return the name of the range on the launch's thread that began last before the launch and has not ended."""
    latest, name = -1.0, ""
    for event in events:
        is_around = event["tid"] == launch["tid"] and event["ts"] <= launch["ts"] < event["ts"] + event["dur"]
        if is_around and event["ts"] > latest:
            latest, name = event["ts"], event["name"]
    return name


def range_us(events: list[Event]) -> dict[str, float]:
    """Return the time of the work that each range launched."""
    pairs = thread_calls(events)
    ranges = [event for event in events if event.get("cat") == "user_annotation"]
    result: dict[str, float] = {}
    for event in events:
        if kind(event):
            name = name_range(ranges, pairs[event["args"]["correlation"]][0])
            result[name] = result.get(name, 0) + event["dur"]
    return result


def name_fault(events: list[Event]) -> str:
    """Return the fault that costs most of the time, if any costs a tenth of it."""
    intervals = list(sweep(events))
    names = {event["args"]["correlation"]: event["name"] for event in events if kind(event)}
    ranges = [event for event in events if event.get("cat") == "user_annotation"]
    costs = {
        "exposed all-reduce": exposed_us(events),
        "pageable copy": sum(end - start for start, end, words in intervals if words == {"pageable"}),
        "sync in the loop": 0.0, "unfused optimizer": 0.0, "many small kernels": 0.0,
    }  # fmt: skip
    for gap, launch, before in gaps(events):
        name = before["name"] if before else ""
        if name == "cudaStreamSynchronize":
            costs["sync in the loop"] += gap
        elif before and "Pageable" in names.get(before["args"].get("correlation"), ""):
            costs["pageable copy"] += gap
        elif name_range(ranges, launch) == "optimizer":
            costs["unfused optimizer"] += gap
        else:
            costs["many small kernels"] += gap
    fault = max(costs, key=lambda name: costs[name])
    return fault if costs[fault] > 0.1 * (intervals[-1][1] - intervals[0][0]) else "none"
