"""A solution of 7.2: it reads the listing by its header, and tries every division and every ring."""

from __future__ import annotations

from itertools import combinations, permutations

ORDER = ("NV#", "PIX", "PXB", "PHB", "NODE", "SYS")


def read(text: str) -> list[list[str]]:
    """Return the links between the GPUs."""
    head, *lines = text.splitlines()
    count = sum(name.startswith("GPU") and name[3:].isdigit() for name in head.split("\t"))
    rows = [line.split("\t") for line in lines if line.startswith("GPU")]
    return [[cell.strip() for cell in row[1 : count + 1]] for row in rows]


def rank_link(link: str) -> int:
    """Return a rank that grows with the speed of a link."""
    return 100 + int(link[2:]) if link.startswith("NV") else -ORDER.index(link)


def score(links: list[list[str]], pairs: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the rank of the slowest link, then how few such links there are."""
    speeds = [rank_link(links[a][b]) for a, b in pairs]
    return (min(speeds), -speeds.count(min(speeds)))


def divide(members: list[int], size: int) -> list[list[list[int]]]:
    """Return all divisions of the members into groups."""
    if not members:
        return [[]]
    first, *following = members
    every = []
    for partners in combinations(following, size - 1):
        remaining = [member for member in following if member not in partners]
        every += [[[first, *partners], *more] for more in divide(remaining, size)]
    return every


def find_groups(links: list[list[str]], size: int) -> list[list[int]]:
    """Return the best division."""
    inside = lambda division: [pair for group in division for pair in combinations(group, 2)]  # noqa: E731
    return max(divide(list(range(len(links))), size), key=lambda division: score(links, inside(division)))


def find_ring(links: list[list[str]]) -> list[int]:
    """Return the best ring, from GPU 0."""
    hops = lambda order: list(zip(order, [*order[1:], order[0]], strict=True))  # noqa: E731
    rings = ([0, *further] for further in permutations(range(1, len(links))))
    return max(rings, key=lambda order: score(links, hops(order)))
