"""Judge my_topology.py of 7.2 on listings of computers with up to eight GPUs, of which all groups and rings are tried to find
the best. Then judge it on two larger computers, for which there are too many to try."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import topology
from topology import Best, Listing, Score

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
        ("return divide(tuple(range(len(links))))[1]", "return divide(tuple(range(len(links))))[1][:1]"),
    ),
    "no-ring": Way(
        "it has to return a list with each of the GPUs 0 to {last} once; do not add the way back to the first",
        ("return max(rings)[1]", "return [*max(rings)[1], 0]"),
    ),
    "turned-away": Way(
        "you maximised the wrong way round: the slowest link of your groups is {given}, the worst possible",
        ("return max(divisions,", "return min(divisions,"),
    ),
    "as-numbered": Way(
        "you grouped the GPUs as they are numbered. The numbers say nothing about the links: your slowest "
        "pair is {given}, but {best} is possible",
        ("return divide(tuple(range(len(links))))[1]",
         "return [list(range(at, at + size)) for at in range(0, len(links), size)]"),
    ),
    "nvlinks-by-text": Way(
        "your slowest links are {given}, but {best} is possible: a link of many NVLinks is faster than one of few. Compare "
        'their numbers as numbers: as text, "NV12" comes before "NV2"',
        ("100 + int(link[2:])", "100 + ord(link[2])"),
    ),
    "nvlinks-alike": Way(
        "your slowest links are {given}, but {best} is possible: all NVLinks count the same for you. A link of many is faster "
        'than one of few, so "NV12" is faster than "NV2"',
        ("100 + int(link[2:])", "100"),
    ),
    "links-summed": Way(
        "your slowest links are {given}, but {best} is possible: you added up the links. All members wait for the slowest one, "
        "and the fastest one does not make up for it",
        ("return (a[0], a[1] + b[1]) if a[0] == b[0] else min(a, b)", "return a[0] + b[0], 0"),
    ),
    "pairs-alone": Way(
        "you looked only at links between neighbours of a group. All members of a group exchange data with each other, so "
        "each pair counts: yours has {given}, but {best} is possible",
        ("score(links, combinations(group, 2))", "score(links, zip(group, group[1:]))"),
    ),
    "ring-as-numbered": Way(
        "your ring goes in the order of the numbers: its slowest hops are {given}, but {best} is possible",
        ("return max(rings)[1]", "return list(range(len(links)))"),
    ),
    "nearest-first": Way(
        "your slowest hops are {given}, but {best} is possible: your ring goes from each GPU to the nearest one that is not in "
        "it yet, and only slow links remain for the last hops. Compare whole rings",
        ("            return max(rings)[1]\n    raise ValueError(\"links\")",
         "            break\n    ring, left = [0], list(range(1, len(links)))\n    while left:\n"
         "        ring.append(max(left, key=lambda gpu: rank_link(links[ring[-1]][gpu])))\n        left.remove(ring[-1])\n"
         "    return ring"),
    ),
    "ring-left-open": Way(
        "you forgot the hop from the last GPU back to the first: with it your ring has {given}, but {best} is possible",
        ("(end := hops[path[-1]][0])", "(end := NO_LINKS)"),
    ),
    "ring-worst": Way(
        "your ring is the slowest of all: {given}. Its slowest hop has to be as fast as it can be",
        ("            return max(rings)[1]\n    raise ValueError(\"links\")",
         "            break\n    from itertools import permutations\n"
         "    rings = ([0, *order] for order in permutations(range(1, len(links))))\n"
         "    return min(rings, key=lambda ring: score(links, zip(ring, [*ring[1:], 0])))"),
    ),
    "slowest-alone": Way(
        "your slowest link is as fast as possible, but you have it more often than necessary: {given}, but {best} is possible",
        ("return (a[0], a[1] + b[1]) if a[0] == b[0] else min(a, b)", "return min(a[0], b[0]), 0"),
    ),
    "all-tried": Way(
        "it has read {reads:,} links of {gpus} GPUs, and has no result yet. It was right for eight GPUs, but {gpus} GPUs have "
        "{divisions:,} divisions into groups of four, and {rings:,} rings. Which of them need not be finished, because "
        "another one is sure to be as good?",
        ("    for slowest in sorted",
         "    if len(links) > 8:\n        from itertools import permutations\n"
         "        rings = ([0, *order] for order in permutations(range(1, len(links))))\n"
         "        return max(rings, key=lambda ring: min(rank_link(links[a][b]) "
         "for a, b in zip(ring, [*ring[1:], 0])))\n    for slowest in sorted"),
    ),
    "too-early": Way(
        "right for computers with up to eight GPUs. With {gpus} GPUs your slowest links are {given}, but {best} is possible: "
        "your search leaves out some that could still become the best",
        ("            return max(rings)[1]\n",
         "            if len(links) > 8:\n                return list(range(len(links)))\n            return max(rings)[1]\n"),
    ),
}  # fmt: skip
Pairs = Callable[[Sequence[Any]], Iterable[tuple[int, int]]]
PUZZLES = (1, 2, 9, 5, 23)  # in puzzle 9, a ring that always goes to the nearest GPU is not the best, wherever it begins

UNKNOWN = Best({}, (0, 0))  # the judge tries every group and every ring itself

SQUARES = [
    row.split()
    for row in """
 X  NV4 NV2 NV2 SYS NV4 SYS SYS
NV4  X  NV2 NV2 NV4 SYS SYS SYS
NV2 NV2  X  NV4 SYS SYS SYS NV4
NV2 NV2 NV4  X  SYS SYS NV4 SYS
SYS NV4 SYS SYS  X  NV4 NV2 NV2
NV4 SYS SYS SYS NV4  X  NV2 NV2
SYS SYS SYS NV4 NV2 NV2  X  NV4
SYS SYS NV4 SYS NV2 NV2 NV4  X
""".strip().splitlines()
]  # two squares of NV4, whose opposite corners have no NVLink


PAIRS = [
    Listing(
        f"four GPUs, {fast} and {slow}",
        [["X" if a == b else fast if (a - b) % 4 == 2 else slow for b in range(4)] for a in range(4)],
        UNKNOWN,
    )
    for slow, fast in itertools.pairwise(topology.PCIE)
]  # two kinds of PCIe link, of which the faster one joins GPU 0 and 2, and 1 and 3

SUMS = Listing(
    "four GPUs, a ring of fast links with one slow hop",
    [row.split() for row in ("X NV12 NV2 NV1", "NV12 X NV12 NV2", "NV2 NV12 X NV12", "NV1 NV2 NV12 X")],
    UNKNOWN,
)  # the ring with the largest sum of NVLinks has the slowest hop


def judge(part: Part) -> None:
    """Judge the reading of listings, then groups of 2 and 4 GPUs, then rings."""
    read, groups, ring = part.function("read"), part.function("find_groups"), part.function("find_ring")
    all_listings = [
        *topology.listings(PUZZLES[0])[:5],
        *map(topology.compose, PUZZLES[1:]),
        Listing("two squares", SQUARES, UNKNOWN),
        *PAIRS,
        SUMS,
    ]
    large_listings = [topology.compose_switches(PUZZLES[0]), topology.compose_hypercube(PUZZLES[0])]
    part.compare([_read(part, read, listing) for listing in all_listings + large_listings])
    answers = [_ask_groups(part, groups, listing, size) for listing in all_listings for size in (2, 4)]
    _compare(part, answers, _list_group_ways())
    _compare(part, [_ask_ring(part, ring, listing) for listing in all_listings], _list_ring_ways())
    for listing in large_listings:
        for size in (2, 4):
            _search(part, partial(_ask_groups, part, groups, listing, size), listing.best.groups[size])
        _search(part, partial(_ask_ring, part, ring, listing), listing.best.ring)
    count = len(all_listings + large_listings)
    part.note(f"right for the listings of {count} computers, with groups of 2 and of 4; two of them have more than eight GPUs")


def divide(members: list[int], size: int) -> Iterator[list[list[int]]]:
    """Yield all ways to divide the members into groups of `size`, each once."""
    if not members:
        yield []
        return
    first, *following = members
    for partners in itertools.combinations(following, size - 1):
        remaining = [member for member in following if member not in partners]
        for groups in divide(remaining, size):
            yield [[first, *partners], *groups]


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
    answer = part.call(read, listing.text, case=listing.name)
    if cards and answer == both:
        raise part.wrong("cards-as-gpus", listing.name, cards=cards, count=count)
    return Case(listing.name, answer, listing.links, ways, {"cards": cards, "count": count})


@dataclass(frozen=True)
class Answer:
    """A division or a ring that the part returned, the links that count in it, and all possible results."""

    name: str
    listing: Listing
    given: Sequence[Any]
    count: Pairs
    others: Callable[[], Iterable[Sequence[Any]]]

    def score(self, division: Sequence[Any]) -> Score:
        """Return the score of a division or a ring."""
        return topology.score(self.listing.links, self.count(division))


def _ask_groups(part: Part, groups: Callable[..., Any], listing: Listing, size: int) -> Answer:
    links, name = listing.links, f"{listing.name}, groups of {size}"
    division = _lists(part.call(groups, topology.count_reads(links), size, case=name))
    members = list(range(len(links)))
    if division is None or {len(group) for group in division} != {size} or sorted(itertools.chain(*division)) != members:
        raise part.wrong("no-division", name, last=len(links) - 1, size=size)
    return Answer(name, listing, division, _pair_all, lambda: divide(members, size))


def _ask_ring(part: Part, ring: Callable[..., Any], listing: Listing) -> Answer:
    links, name = listing.links, f"{listing.name}, ring"
    answer = part.call(ring, topology.count_reads(links), case=name)
    members = list(range(len(links)))
    if _lists([answer]) is None or sorted(answer) != members:
        raise part.wrong("no-ring", name, last=len(links) - 1)
    first, *following = answer
    return Answer(
        name, listing, answer, _pair_ring, lambda: ([first, *order] for order in itertools.permutations(sorted(following)))
    )


def _search(part: Part, ask: partial[Answer], best: Score) -> None:
    """Return if the part's result for a large computer, the third argument of `ask`, has the best score."""
    listing: Listing = ask.args[2]
    gpus = len(listing.links)
    try:
        answer = ask()
    except Verdict as verdict:
        if topology.TooManyReadsError.__name__ not in verdict.says:
            raise
        divisions = math.factorial(gpus) // (math.factorial(4) ** (gpus // 4) * math.factorial(gpus // 4))
        rings = math.factorial(gpus - 1) // 2
        raise part.wrong(
            "all-tried", verdict.case, reads=topology.MAX_READS, gpus=gpus, divisions=divisions, rings=rings
        ) from None
    if (score := answer.score(answer.given)) != best:
        names = {"given": topology.name_score(listing.links, score), "best": topology.name_score(listing.links, best)}
        raise part.wrong("too-early", answer.name, gpus=gpus, **names)


def _compare(part: Part, answers: Sequence[Answer], ways: Mapping[str, Callable[[Answer], bool]]) -> None:
    """Return if all answers are as good as the best.

    Otherwise, name the mistake that leads to all of them, or show the simplest wrong answer.
    """
    best = [max(map(answer.score, answer.others())) for answer in answers]
    scores = [answer.score(answer.given) for answer in answers]
    wrong_indices = [at for at in range(len(answers)) if scores[at] != best[at]]
    if not wrong_indices:
        return
    at = min(wrong_indices, key=lambda at: len(set(itertools.chain(*answers[at].listing.links))))  # the fewest kinds of link
    links = answers[at].listing.links
    values = {"given": topology.name_score(links, scores[at]), "best": topology.name_score(links, best[at])}
    for way, agrees in ways.items():
        if all(map(agrees, answers)):
            raise part.wrong(way, answers[at].name, **values)
    passing = [answer.name for number, answer in enumerate(answers) if number not in wrong_indices]
    passing_text = f". It is right for {'; '.join(passing[:3])}" if passing else ""
    raise Verdict("failed", "other", f"its slowest links are {values['given']}, but {values['best']} is possible{passing_text}",
                  answers[at].name)  # fmt: skip


def _list_group_ways() -> dict[str, Callable[[Answer], bool]]:
    """Return, for each mistake, a test of whether it leads to a division."""
    return {
        "as-numbered": lambda answer: sorted(map(sorted, answer.given)) == _number(answer),
        "turned-away": lambda answer: answer.score(answer.given) == min(map(answer.score, answer.others())),
        "pairs-alone": lambda answer: any(_is_best(answer, pairs=pairs) for pairs in (_pair_neighbours, _pair_round)),
        "nvlinks-by-text": lambda answer: _is_best(answer, rank=_rank_by_text),
        "links-summed": _has_best_sum,
        "nvlinks-alike": lambda answer: _is_best(answer, rank=_rank_alike),
        "slowest-alone": _has_best_slowest,
    }


def _list_ring_ways() -> dict[str, Callable[[Answer], bool]]:
    return {
        "ring-as-numbered": lambda answer: list(answer.given) == sorted(answer.given),
        "ring-worst": lambda answer: answer.score(answer.given) == min(map(answer.score, answer.others())),
        "ring-left-open": lambda answer: _is_best(answer, pairs=itertools.pairwise),
        "nearest-first": _goes_to_nearest,
        "nvlinks-by-text": lambda answer: _is_best(answer, rank=_rank_by_text),
        "links-summed": _has_best_sum,
        "nvlinks-alike": lambda answer: _is_best(answer, rank=_rank_alike),
        "slowest-alone": _has_best_slowest,
    }


def _is_best(
    answer: Answer, *, pairs: Pairs | None = None, rank: Callable[[str], int] = topology.rank_link, add: bool = False
) -> bool:
    """Return whether an answer would be the best one under a wrong rule.

    `pairs`: the pairs that count. `rank`: the ranks of links. `add`: add up the ranks instead of comparing the slowest links.
    """
    links = answer.listing.links

    def measure(division: Sequence[Any]) -> tuple[int, ...]:
        ranks = [rank(links[a][b]) for a, b in (pairs or answer.count)(division)]
        return (sum(ranks),) if add else (min(ranks), -ranks.count(min(ranks)))

    return measure(answer.given) == max(map(measure, answer.others()))


def _has_best_sum(answer: Answer) -> bool:
    return any(_is_best(answer, rank=rank, add=True) for rank in (topology.rank_link, _rank_by_count))


def _has_best_slowest(answer: Answer) -> bool:
    return answer.score(answer.given)[0] == max(map(answer.score, answer.others()))[0]


def _goes_to_nearest(answer: Answer) -> bool:
    """Return whether each hop of a ring is the fastest one to a GPU that was not in the ring yet."""
    links, ring = answer.listing.links, answer.given
    ranks = [[topology.rank_link(links[gpu_here][gpu]) for gpu in ring[at + 1 :]] for at, gpu_here in enumerate(ring[:-1])]
    return all(ranks_left[0] == max(ranks_left) for ranks_left in ranks)


def _rank_by_text(link: str) -> int:
    return 100 + ord(link[2]) if link.startswith("NV") else topology.rank_link(link)


def _rank_by_count(link: str) -> int:
    """Return a rank in proportion to the NVLinks of a link, of which each one is faster than any PCIe link."""
    return 20 * int(link[2:]) if link.startswith("NV") else topology.rank_link(link)


def _rank_alike(link: str) -> int:
    return 100 if link.startswith("NV") else topology.rank_link(link)


def _number(answer: Answer) -> list[list[int]]:
    """Return the division of the GPUs into groups of neighbouring numbers."""
    size = len(answer.given[0])
    return [list(range(at, at + size)) for at in range(0, len(answer.listing.links), size)]


def _pair_all(groups: Sequence[Sequence[int]]) -> Iterable[tuple[int, int]]:
    return (pair for group in groups for pair in itertools.combinations(group, 2))


def _pair_neighbours(groups: Sequence[Sequence[int]]) -> Iterable[tuple[int, int]]:
    return (pair for group in groups for pair in itertools.pairwise(group))


def _pair_round(groups: Sequence[Sequence[int]]) -> Iterable[tuple[int, int]]:
    return (pair for group in groups for pair in _pair_ring(group))


def _pair_ring(ring: Sequence[int]) -> Iterable[tuple[int, int]]:
    return zip(ring, [*ring[1:], ring[0]], strict=True)


def _lists(answer: Any) -> list[list[int]] | None:
    """Return a division as lists of numbers, or None if it is something else."""
    groups = answer if isinstance(answer, (list, tuple)) else []
    whole = groups and all(
        isinstance(group, (list, tuple, set, frozenset)) and all(isinstance(gpu, int) for gpu in group) for group in groups
    )
    return [list(group) for group in groups] if whole else None
