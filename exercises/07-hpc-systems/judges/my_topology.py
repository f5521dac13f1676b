"""Judges my_topology.py of 7.2 on the listings of five computers; the best groups and rings are found by trying all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import topology
from topology import Links, Listing, Score

from gpucourse.judge import Case, Part, Verdict, Way

WAYS = {
    "cards-as-gpus": Way(
        "the {cards} network cards (NIC) are in the same table, and you took them for GPUs, of which there are {count}",
        ('sum(name.startswith("GPU") and name[3:].isdigit() for name in head.split("\\t"))',
         'sum(name[:3] in ("GPU", "NIC") and name[3:].isdigit() for name in head.split("\\t"))'),
    ),
    "spaces-kept": Way(
        'the listing prints " X " with spaces around it for a GPU and itself: strip them',
        ("[cell.strip() for cell", "[cell for cell"),
    ),
    "affinity-as-link": Way(
        "you took a cell of the columns CPU Affinity or NUMA Affinity for a link: only the first {count} columns are GPUs",
        ("row[1 : count + 1]", "row[1:]"),
    ),
    "first-column": Way(
        "your columns are shifted by one: the first cell of a row is the name of its GPU, not a link",
        ("row[1 : count + 1]", "row[0:count]"),
    ),
    "no-division": Way(
        "it has to return groups of {size} as lists of numbers, with each of the GPUs 0 to {last} in one of them",
        ("key=lambda division: score(links, inside(division)))", "key=lambda division: score(links, inside(division)))[:1]"),
    ),
    "no-ring": Way(
        "it has to return a list with each of the GPUs 0 to {last} once; do not add the way back to the first",
        ("return max(rings, key=lambda order: score(links, hops(order)))",
         "return [*max(rings, key=lambda order: score(links, hops(order))), 0]"),
    ),
    "turned-away": Way(
        "you maximised the wrong way round: the slowest link of your groups is {given}, the worst possible",
        ("return max(divide(", "return min(divide("),
    ),
    "as-numbered": Way(
        "you grouped the GPUs as they are numbered. The numbers say nothing about the links: your slowest "
        "pair is {given}, but {best} is possible",
        ("return max(divide(list(range(len(links))), size), key=lambda division: score(links, inside(division)))",
         "return [list(range(at, at + size)) for at in range(0, len(links), size)]"),
    ),
    "nvlinks-by-text": Way(
        "your slowest links are {given}, but {best} is possible: a link of many NVLinks is faster than one of few. Compare "
        'their numbers as numbers: as text, "NV12" comes before "NV2"',
        ("100 + int(link[2:])", "100 + ord(link[2])"),
    ),
    "pairs-alone": Way(
        "you looked only at links between neighbours of a group. All members of a group exchange data with each other, so "
        "each pair counts: yours has {given}, but {best} is possible",
        ("for pair in combinations(group, 2)]", "for pair in zip(group, group[1:])]"),
    ),
    "ring-as-numbered": Way(
        "your ring goes in the order of the numbers: its slowest hops are {given}, but {best} is possible",
        ("return max(rings, key=lambda order: score(links, hops(order)))", "return list(range(len(links)))"),
    ),
    "ring-left-open": Way(
        "you forgot the hop from the last GPU back to the first: with it your ring has {given}, but {best} is possible",
        ("[*order[1:], order[0]], strict=True)", "order[1:], strict=False)"),
    ),
    "ring-worst": Way(
        "your ring is the slowest of all: {given}. Its slowest hop has to be as fast as it can be",
        ("return max(rings", "return min(rings"),
    ),
    "slowest-alone": Way(
        "your slowest link is as fast as possible, but you have it more often than necessary: {given}, but {best} is possible",
        ("(min(speeds), -speeds.count(min(speeds)))", "(min(speeds), 0)"),
    ),
}  # fmt: skip
PUZZLES = (1, 2, 4, 5, 23)


def judge(part: Part) -> None:
    """Reading five listings; then groups of 2 and 4; then rings."""
    read, groups, ring = part.function("read"), part.function("find_groups"), part.function("find_ring")
    every = [*topology.listings(PUZZLES[0]), *map(topology.compose, PUZZLES[1:])]
    part.compare([_read(part, read, listing) for listing in every])
    for listing in every:
        for size in (2, 4):
            _judge_groups(part, groups, listing, size)
        _judge_ring(part, ring, listing)
    part.note(f"right for the listings of {len(every)} computers, with groups of 2 and of 4")


def _read(part: Part, read: Callable[[str], Any], listing: Listing) -> Case:
    count, cards = len(listing.links), listing.nics
    table = [row.split("\t") for row in listing.text.split("\n\n")[0].splitlines()[1:]]
    both = [[cell.strip() for cell in row[1 : count + cards + 1]] for row in table]
    ways = {
        "spaces-kept": [row[1 : count + 1] for row in table[:count]],
        "affinity-as-link": [[cell.strip() for cell in row[1:]] for row in table[:count]],
        "first-column": [[cell.strip() for cell in row[:count]] for row in table[:count]],
    }
    if cards:
        ways["cards-as-gpus"] = both[:count]
    given = part.call(read, listing.text, case=listing.name)
    if cards and given == both:
        raise part.wrong("cards-as-gpus", listing.name, cards=cards, count=count)
    return Case(listing.name, given, listing.links, ways, {"cards": cards, "count": count})


def _judge_groups(part: Part, groups: Callable[..., Any], listing: Listing, size: int) -> None:
    links, name = listing.links, f"{listing.name}, groups of {size}"
    given = _lists(part.call(groups, [list(row) for row in links], size, case=name))
    members = list(range(len(links)))
    if given is None or {len(group) for group in given} != {size} or sorted(itertools.chain(*given)) != members:
        raise part.wrong("no-division", name, last=len(links) - 1, size=size)
    mine, best = topology.group_score(links, given), topology.best_group_score(links, size)
    if mine == best:
        return
    values = _values(links, mine, best)
    if sorted(map(sorted, given)) == [members[at : at + size] for at in range(0, len(links), size)]:
        raise part.wrong("as-numbered", name, **values)
    ways = [(topology.group_score(links, way), _beside(links, way)) for way in topology.divisions(members, size)]
    if mine == min(ways)[0]:
        raise part.wrong("turned-away", name, **values)
    if size > 2 and _beside(links, given) == max(beside for _, beside in ways):
        raise part.wrong("pairs-alone", name, **values)
    raise _describe(part, name, links, mine, best)


def _judge_ring(part: Part, ring: Callable[..., Any], listing: Listing) -> None:
    links, name = listing.links, f"{listing.name}, ring"
    given = part.call(ring, [list(row) for row in links], case=name)
    members = list(range(len(links)))
    if _lists([given]) is None or sorted(given) != members:
        raise part.wrong("no-ring", name, last=len(links) - 1)
    mine, best = topology.ring_score(links, given), topology.best_ring_score(links)
    if mine == best:
        return
    values = _values(links, mine, best)
    if mine[0] == best[0] and topology.score(links, itertools.pairwise(given)) < best:
        raise part.wrong("slowest-alone", name, **values)
    if list(given) == members:
        raise part.wrong("ring-as-numbered", name, **values)
    if topology.score(links, itertools.pairwise(given)) >= best:
        raise part.wrong("ring-left-open", name, **values)
    if mine == min(topology.ring_score(links, (0, *rest)) for rest in itertools.permutations(members[1:])):
        raise part.wrong("ring-worst", name, **values)
    raise _describe(part, name, links, mine, best)


def _describe(part: Part, name: str, links: Links, mine: Score, best: Score) -> Verdict:
    values = _values(links, mine, best)
    if mine[0] == best[0]:
        return part.wrong("slowest-alone", name, **values)
    nvlinks = {link for row in links for link in row if link.startswith("NV")}
    if len(nvlinks) > 1:
        return part.wrong("nvlinks-by-text", name, **values)
    return Verdict("failed", "other", "its slowest links are {given}, but {best} is possible".format(**values), name)


def _beside(links: Links, groups: Sequence[Sequence[int]]) -> Score:
    """The score where only neighbours within a group count."""
    return topology.score(links, (pair for group in groups for pair in itertools.pairwise(group)))


def _lists(given: Any) -> list[list[int]] | None:
    """A division as lists of numbers; None where it is something else."""
    groups = given if isinstance(given, (list, tuple)) else []
    whole = groups and all(
        isinstance(group, (list, tuple, set, frozenset)) and all(isinstance(gpu, int) for gpu in group) for group in groups
    )
    return [list(group) for group in groups] if whole else None


def _values(links: Links, mine: Score, best: Score) -> dict[str, str]:
    return {"given": topology.name_score(links, mine), "best": topology.name_score(links, best)}
