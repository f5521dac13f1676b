"""Solve the sharing of 7.1 with rules for the way, and with backtracking for places, the largest instance first."""

from __future__ import annotations


def way(service: dict, card: dict) -> str:
    """Return the way of sharing. The strictest needs are checked first."""
    if service["gib"] > card["gib"] / 2 or service["percent"] > 50:
        return "none"
    if service["isolated"]:
        return "mig" if card["profiles"] else "none"
    return "mps" if service["within_ms"] is not None else "time-slicing"


def profile(service: dict, card: dict) -> str:
    """Return the first profile that is large enough."""
    for name, size in card["profiles"].items():
        if size["gib"] >= service["gib"] and 100 * size["compute"] / card["compute"] >= service["percent"]:
            return name
    raise ValueError("larger than the card")


def place(names: list[str], card: dict) -> list[tuple[int, int]]:
    """Return a (GPU, start) for each instance on the fewest GPUs."""
    order = sorted(range(len(names)), key=lambda number: -card["profiles"][names[number]]["memory"])
    for count in range(1, len(names) + 1):
        placement: dict[int, tuple[int, int]] = {}
        if fit(order, names, card, [set() for _ in range(count)], [0] * count, placement):
            return [placement[number] for number in range(len(names))]
    return []


def fit(order: list[int], names: list[str], card: dict, used: list[set], compute: list[int], placement: dict) -> bool:
    """Return whether the other instances can be placed. `placement` then has their places."""
    if not order:
        return True
    size = card["profiles"][names[order[0]]]
    states = []
    for gpu, slices in enumerate(used):
        if (slices, compute[gpu]) in states or compute[gpu] + size["compute"] > card["compute"]:
            continue
        states.append((set(slices), compute[gpu]))
        for start in reversed(size["starts"]):
            memory_slices = set(range(start, start + size["memory"]))
            if memory_slices & slices:
                continue
            used_after = [used[index] | memory_slices if index == gpu else used[index] for index in range(len(used))]
            more = [compute_used + size["compute"] * (index == gpu) for index, compute_used in enumerate(compute)]
            placement[order[0]] = (gpu, start)
            if fit(order[1:], names, card, used_after, more, placement):
                return True
    return False
