"""Rules for the way; places the largest instances first, from their last permitted start, and backtracks."""

from __future__ import annotations


def way(service: dict, card: dict) -> str:
    """From the strictest need to the weakest."""
    if service["gib"] > card["gib"] / 2 or service["percent"] > 50:
        return "none"
    if service["isolated"]:
        return "mig" if card["profiles"] else "none"
    return "mps" if service["within_ms"] is not None else "time-slicing"


def profile(service: dict, card: dict) -> str:
    """Return the first that is large enough."""
    for name, size in card["profiles"].items():
        if size["gib"] >= service["gib"] and 100 * size["compute"] / card["compute"] >= service["percent"]:
            return name
    raise ValueError("larger than the card")


def place(names: list[str], card: dict) -> list[tuple[int, int]]:
    """Add GPUs until all fit."""
    order = sorted(range(len(names)), key=lambda number: -card["profiles"][names[number]]["memory"])
    for count in range(1, len(names) + 1):
        chosen: dict[int, tuple[int, int]] = {}
        if fit(order, names, card, [set() for _ in range(count)], [0] * count, chosen):
            return [chosen[number] for number in range(len(names))]
    return []


def fit(order: list[int], names: list[str], card: dict, used: list[set], compute: list[int], chosen: dict) -> bool:
    """Whether the rest of the order can be placed; `chosen` then says where."""
    if not order:
        return True
    size = card["profiles"][names[order[0]]]
    tried = []
    for gpu, slices in enumerate(used):
        if (slices, compute[gpu]) in tried or compute[gpu] + size["compute"] > card["compute"]:
            continue
        tried.append((set(slices), compute[gpu]))
        for start in reversed(size["starts"]):
            own = set(range(start, start + size["memory"]))
            if own & slices:
                continue
            after = [used[other] | own if other == gpu else used[other] for other in range(len(used))]
            more = [spent + size["compute"] * (other == gpu) for other, spent in enumerate(compute)]
            chosen[order[0]] = (gpu, start)
            if fit(order[1:], names, card, after, more, chosen):
                return True
    return False
