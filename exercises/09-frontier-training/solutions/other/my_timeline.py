"""Solve the timeline of 9.6 by recursion: the end of each issue follows from the ends of its inputs."""

from __future__ import annotations

from functools import cache

QUEUE = {"gather": 0, "forward": 1, "backward": 1, "reduce": 2}


def timeline(issues, seconds, room, issue_s):
    """Return when each issue begins and ends."""
    gathers = [place for place, (kind, _) in enumerate(issues) if kind == "gather"]
    frees = [place for place, (kind, _) in enumerate(issues) if kind == "free"]

    def find_before(place, kinds, layer=None):
        for earlier in range(place - 1, -1, -1):
            if issues[earlier][0] in kinds and layer in (None, issues[earlier][1]):
                return earlier
        return None

    @cache
    def begin(place):
        kind, layer = issues[place]
        if kind == "free":
            return end(find_before(place, ("forward", "backward"), layer))
        same = [other for other in QUEUE if QUEUE[other] == QUEUE[kind]]
        needs = [find_before(place, same)]
        if kind == "gather":
            number = gathers.index(place)
            needs.append(frees[number - room] if number >= room else None)
        else:
            needs.append(find_before(place, ("backward",) if kind == "reduce" else ("gather",), layer))
        return max([(place + 1) * issue_s, *(end(need) for need in needs if need is not None)])

    @cache
    def end(place):
        kind, layer = issues[place]
        return begin(place) + (0 if kind == "free" else seconds[kind][layer])

    return [(begin(place), end(place)) for place in range(len(issues))]
