"""Solve the topology of 7.2: of all partial divisions and rings with the same remaining GPUs, keep only the best."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, reduce
from itertools import combinations

ORDER = ("NV#", "PIX", "PXB", "PHB", "NODE", "SYS")
Score = tuple[int, int]
NO_LINKS: Score = (1000, 0)


def read(text: str) -> list[list[str]]:
    """Return the links between the GPUs."""
    head, *lines = text.splitlines()
    count = sum(name.startswith("GPU") and name[3:].isdigit() for name in head.split("\t"))
    rows = [line.split("\t") for line in lines if line.startswith("GPU")]
    return [[cell.strip() for cell in row[1 : count + 1]] for row in rows]


def rank_link(link: str) -> int:
    """Return a rank that grows with the speed of a link."""
    return 100 + int(link[2:]) if link.startswith("NV") else -ORDER.index(link)


def combine(a: Score, b: Score) -> Score:
    """Return the rank of the slowest link in two sets of links, then how few such links there are.

    If `a` is at least as good as `x`, then `combine(a, b)` is at least as good as `combine(x, b)`.
    """
    return (a[0], a[1] + b[1]) if a[0] == b[0] else min(a, b)


def score(links: list[list[str]], pairs: Iterable[tuple[int, int]]) -> Score:
    """Return the score of some pairs of GPUs."""
    return reduce(combine, ((rank_link(links[a][b]), -1) for a, b in pairs), NO_LINKS)


def find_groups(links: list[list[str]], size: int) -> list[list[int]]:
    """Return the best division."""
    score_group = cache(lambda group: score(links, combinations(group, 2)))

    @cache
    def divide(members: tuple[int, ...]) -> tuple[Score, list[list[int]]]:
        if not members:
            return NO_LINKS, []
        first, *following = members
        divisions = []
        for partners in combinations(following, size - 1):
            worth, groups = divide(tuple(member for member in following if member not in partners))
            group = (first, *partners)
            divisions.append((combine(score_group(group), worth), [list(group), *groups]))
        return max(divisions, key=lambda division: division[0])

    return divide(tuple(range(len(links))))[1]


def find_ring(links: list[list[str]]) -> list[int]:
    """Return the best ring, beginning at GPU 0. Try the speeds one after the other, each with links of at least that speed."""
    hops = [[NO_LINKS if link == "X" else (rank_link(link), -1) for link in row] for row in links]
    for slowest in sorted({rank for row in hops for rank, _ in row}, reverse=True):
        paths = {(1, 0): (NO_LINKS, [0])}  # by the GPUs that they visit, and the last of them
        for _ in links[1:]:
            longer: dict[tuple[int, int], tuple[Score, list[int]]] = {}
            for (visited, last), (worth, path) in paths.items():
                for gpu, hop in enumerate(hops[last]):
                    if hop[0] < slowest or visited >> gpu & 1:
                        continue
                    key, longer_worth = (visited | 1 << gpu, gpu), combine(worth, hop)
                    if key not in longer or longer_worth > longer[key][0]:
                        longer[key] = longer_worth, [*path, gpu]
            paths = longer
        rings = [(combine(worth, end), path) for worth, path in paths.values() if (end := hops[path[-1]][0])[0] >= slowest]
        if rings:
            return max(rings)[1]
    raise ValueError("links")
