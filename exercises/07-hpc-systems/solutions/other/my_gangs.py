"""Solve the scheduler of 7.5 with the nodes that the first waiting gang will not need when it starts."""

from __future__ import annotations

import itertools


def schedule(queue, free, running, rack_size):
    """Return the starts. A gang passes if it ends before the first one's turn, or if the racks are large enough for both."""
    racks = list(free)
    idle_nodes = [free[rack] for rack in racks]
    events = [(run["minutes_left"], [run["nodes"].get(rack, 0) for rack in racks]) for run in running]
    starts, turn, first = {}, None, None
    for gang in queue:
        options = list_choices(gang["nodes"], idle_nodes, rack_size)
        if first is None and not options:
            first = gang["nodes"]
            turn, later = find_turn(first, idle_nodes, events, rack_size)
            continue
        for place_counts in options:
            if first is not None and gang["minutes"] > turn:
                remaining = [count - nodes for count, nodes in zip(later, place_counts, strict=True)]
                if not list_choices(first, remaining, rack_size):
                    continue
                later = remaining
            elif first is not None and gang["minutes"] == turn:
                pass
            idle_nodes = [count - nodes for count, nodes in zip(idle_nodes, place_counts, strict=True)]
            events.append((gang["minutes"], place_counts))
            starts[gang["name"]] = {rack: nodes for rack, nodes in zip(racks, place_counts, strict=True) if nodes}
            break
    return starts


def list_choices(nodes, idle_nodes, size):
    """Return every choice of racks for a gang, those that leave the fewest free nodes first."""
    count = (nodes + size - 1) // size
    choices = []
    for chosen in itertools.combinations(range(len(idle_nodes)), count):
        if sum(idle_nodes[rack] for rack in chosen) >= nodes:
            place_counts, remaining = [0] * len(idle_nodes), nodes
            for rack in sorted(chosen, key=lambda rack: -idle_nodes[rack]):
                place_counts[rack] = min(idle_nodes[rack], remaining)
                remaining -= place_counts[rack]
            choices.append((sum(idle_nodes[rack] for rack in chosen), place_counts))
    return [place_counts for _, place_counts in sorted(choices)]


def find_turn(nodes, idle_nodes, events, size):
    """Return the minutes until a gang fits, and the idle nodes at that time."""
    idle_nodes, minute = list(idle_nodes), 0
    pending = sorted(events, key=lambda event: event[0])
    while not list_choices(nodes, idle_nodes, size):
        minute = pending[0][0]
        while pending and pending[0][0] == minute:
            idle_nodes = [count + count_of_gang for count, count_of_gang in zip(idle_nodes, pending.pop(0)[1], strict=True)]
    return minute, idle_nodes
