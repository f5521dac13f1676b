"""Solve the timeline of 9.6: visit the three queues in turn, and time the next work of each once its inputs have times."""

from __future__ import annotations


def timeline(
    issues: list[tuple[str, int]], seconds: dict[str, list[float]], room: int, issue_s: float
) -> list[tuple[float, float]]:
    """Return when each issue begins and ends."""
    queues = {"gather": "in", "forward": "compute", "backward": "compute", "reduce": "out"}
    needs: list[list[int]] = []
    gathers, frees, last, tail = [], [], {}, {}
    for place, (kind, layer) in enumerate(issues):
        source = {"forward": "gather", "backward": "gather", "reduce": "backward", "free": "compute"}.get(kind)
        needs.append([last[source, layer]] if source else [])
        if kind in queues:
            needs[place] += [tail[queues[kind]]] if queues[kind] in tail else []
            tail[queues[kind]] = place
        last[kind, layer] = place
        if kind in ("forward", "backward"):
            last["compute", layer] = place
        if kind == "gather":
            gathers.append(place)
        if kind == "free":
            frees.append(place)
    for number in range(room, len(gathers)):
        needs[gathers[number]].append(frees[number - room])
    spans: dict[int, tuple[float, float]] = {}
    while len(spans) < len(issues):
        for place, (kind, layer) in enumerate(issues):
            if place not in spans and all(need in spans for need in needs[place]):
                ready = max((spans[need][1] for need in needs[place]), default=0)
                begin = ready if kind == "free" else max(ready, (place + 1) * issue_s)
                spans[place] = begin, begin + (seconds[kind][layer] if kind in queues else 0)
    return [spans[place] for place in range(len(issues))]
