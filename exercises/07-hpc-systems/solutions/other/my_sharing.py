"""Solve the sharing of 7.1 with all sets of instances that fit on one GPU: cover the instances with the fewest sets."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations_with_replacement


def way(service: dict, card: dict) -> str:
    """Return the way of sharing, by a table of the needs."""
    alone = max(service["gib"] / card["gib"], service["percent"] / 100) > 0.5
    if alone or (service["isolated"] and not card["profiles"]):
        return "none"
    return "mig" if service["isolated"] else "time-slicing" if service["within_ms"] is None else "mps"


def profile(service: dict, card: dict) -> str:
    """Return the smallest profile by memory, then by processors."""
    enough = [
        (size["gib"], size["compute"], name)
        for name, size in card["profiles"].items()
        if size["gib"] >= service["gib"] and size["compute"] * 100 >= service["percent"] * card["compute"]
    ]
    return min(enough)[2]


def layout(kinds: tuple[str, ...], card: dict, used: frozenset = frozenset()) -> list[int] | None:
    """Return starts for these instances on one GPU."""
    if not kinds:
        return []
    size = card["profiles"][kinds[0]]
    for start in size["starts"]:
        memory_slices = frozenset(range(start, start + size["memory"]))
        if not memory_slices & used:
            further_starts = layout(kinds[1:], card, used | memory_slices)
            if further_starts is not None:
                return [start, *further_starts]
    return None


def list_sets(kinds: list[str], card: dict) -> dict[tuple[str, ...], list[int]]:
    """Return every set of instances that one GPU can hold, with their starts."""
    profiles = card["profiles"]
    sets = {}
    for count in range(1, card["compute"] + 1):
        for some in combinations_with_replacement(kinds, count):
            compute = sum(profiles[name]["compute"] for name in some)
            if compute <= card["compute"] and (starts := layout(some, card)) is not None:
                sets[some] = starts
    return sets


def place(names: list[str], card: dict) -> list[tuple[int, int]]:
    """Return places in the fewest sets that hold all instances."""
    profiles = card["profiles"]
    kinds = sorted(set(names), key=lambda name: (-profiles[name]["memory"], name))
    sets = list_sets(kinds, card)

    @cache
    def cover(remaining: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
        """Return as few sets as possible for that many instances of each kind."""
        if not any(remaining):
            return ()
        first = next(number for number, count in enumerate(remaining) if count)
        best: tuple[tuple[str, ...], ...] | None = None
        for some in sets:
            counts = Counter(some)
            if counts[kinds[first]] and all(counts[kind] <= count for kind, count in zip(kinds, remaining, strict=True)):
                further_sets = cover(tuple(count - counts[kind] for kind, count in zip(kinds, remaining, strict=True)))
                if best is None or len(further_sets) + 1 < len(best):
                    best = (some, *further_sets)
        return best or ()

    counts = Counter(names)
    spots: dict[str, list[tuple[int, int]]] = {}
    for gpu, some in enumerate(cover(tuple(counts[kind] for kind in kinds))):
        for name, start in zip(some, sets[some], strict=True):
            spots.setdefault(name, []).append((gpu, start))
    return [spots[name].pop(0) for name in names]
