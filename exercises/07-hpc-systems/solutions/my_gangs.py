"""Solve the scheduler of 7.5: reserve nodes for the first waiting gang. Others start earlier if they do not delay it."""

from __future__ import annotations


def schedule(queue: list[dict], free: dict[str, int], running: list[dict], rack_size: int) -> dict[str, dict[str, int]]:
    """Return the starts: gangs from the front of the queue, then every gang that does not delay the first waiting one."""
    free, starts = dict(free), {}
    ends = [(run["minutes_left"], run["nodes"]) for run in running]

    def start(gang: dict, place: dict[str, int]) -> None:
        starts[gang["name"]] = place
        ends.append((gang["minutes"], place))
        free.update(subtract(free, place))

    waiting = list(queue)
    while waiting and (place := fit(waiting[0]["nodes"], free, rack_size)):
        start(waiting.pop(0), place)
    if waiting:
        first = waiting[0]["nodes"]
        reservation = find_wait(first, free, ends, rack_size)
        for gang in waiting[1:]:
            for place in list_places(gang["nodes"], free, rack_size):
                if find_wait(first, subtract(free, place), [*ends, (gang["minutes"], place)], rack_size) <= reservation:
                    start(gang, place)
                    break
    return starts


def list_places(nodes: int, free: dict[str, int], size: int) -> list[dict[str, int]]:
    """Return the possible places for a gang: racks with enough nodes, the fullest first. A gang that is larger than a rack has
    one place, in several racks."""
    if nodes <= size:
        return [{rack: nodes} for rack in sorted(free, key=lambda rack: free[rack]) if free[rack] >= nodes]
    racks = sorted(free, key=lambda rack: free[rack], reverse=True)[: -(-nodes // size)]
    if sum(free[rack] for rack in racks) < nodes:
        return []
    place = {}
    for rack in racks:
        place[rack] = min(free[rack], nodes - sum(place.values()))
    return [place]


def fit(nodes: int, free: dict[str, int], size: int) -> dict[str, int] | None:
    """Return the first place for a gang, or None."""
    return next(iter(list_places(nodes, free, size)), None)


def find_wait(nodes: int, free: dict[str, int], ends: list[tuple[int, dict[str, int]]], size: int) -> int:
    """Return the number of minutes until a gang fits, if nothing else starts."""
    minute = 0
    for end, place in sorted(ends, key=lambda item: item[0]):
        if fit(nodes, free, size):
            break
        minute, free = end, {rack: count + place.get(rack, 0) for rack, count in free.items()}
    return minute


def subtract(free: dict[str, int], place: dict[str, int]) -> dict[str, int]:
    """Return the free nodes without those of a place."""
    return {rack: count - place.get(rack, 0) for rack, count in free.items()}
