"""Solve the topology of 7.2: extend groups and rings step by step, and drop those that cannot become the best."""

from __future__ import annotations

import re


def read(text: str) -> list[list[str]]:
    """Return the links between the GPUs."""
    table = [re.split(r"\s+", line.strip()) for line in text.splitlines() if re.match(r"GPU\d+\s", line)]
    return [row[1 : len(table) + 1] for row in table]


def cost(link: str) -> int:
    """Return the cost of a link, 0 for "X": one slow link outweighs any number of faster ones."""
    if link == "X":
        return 0
    rank = 20 - int(link[2:]) if link.startswith("NV") else 20 + ("PIX", "PXB", "PHB", "NODE", "SYS").index(link)
    return 30**rank


def find_groups(links: list[list[str]], size: int) -> list[list[int]]:
    """Return the division with the lowest cost."""

    costs = [[cost(link) for link in row] for row in links]

    def divide(remaining: list[int], group: list[int], cost_so_far: int) -> None:
        nonlocal best, least
        if cost_so_far >= least:
            return
        if len(group) == size:
            if cost_so_far >= least_by_rest.get(rest := tuple(remaining), least):
                return
            least_by_rest[rest] = cost_so_far
            division.append(group)
            if remaining:
                divide(remaining[1:], [remaining[0]], cost_so_far)
            else:
                best, least = [list(members) for members in division], cost_so_far
            division.pop()
            return
        candidates = [(sum(costs[member][partner] for partner in group), place) for place, member in enumerate(remaining)]
        for more, place in sorted(candidates):  # the nearest first, so that a good division is found early
            member = remaining[place]
            if member > group[-1]:
                divide(remaining[:place] + remaining[place + 1 :], [*group, member], cost_so_far + more)

    least_by_rest: dict[tuple[int, ...], int] = {}
    division: list[list[int]] = []
    best: list[list[int]] = []
    least = 30**40
    divide(list(range(1, len(links))), [0], 0)
    return best


def find_ring(links: list[list[str]]) -> list[int]:
    """Return the ring with the lowest cost."""

    costs = [[cost(link) for link in row] for row in links]

    def go(order: list[int], cost_so_far: int) -> None:
        nonlocal best, least
        if cost_so_far >= least:
            return
        if len(order) == len(links):
            whole = cost_so_far + costs[order[-1]][0]
            if whole < least:
                best, least = list(order), whole
            return
        place = frozenset(order), order[-1]
        if cost_so_far >= least_by_place.get(place, least):
            return
        least_by_place[place] = cost_so_far
        here = costs[order[-1]]
        for following in sorted(set(range(1, len(links))) - set(order), key=here.__getitem__):
            go([*order, following], cost_so_far + here[following])

    least_by_place: dict[tuple[frozenset[int], int], int] = {}
    best: list[int] = []
    least = 30**40
    go([0], 0)
    return best
