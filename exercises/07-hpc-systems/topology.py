"""The links between the GPUs of a computer: listings as `nvidia-smi topo -m` prints them, and how fast their best
groups and rings are.

The listings were written for this course in the format of driver 535 and later. The hybrid cube has the links of a DGX-1 with
V100 (NVIDIA, "DGX-1 with Tesla V100 System Architecture", 2017, figure 4). The links of the other computers follow from their
names; the hypercube has the shape of the links between the 16 accelerators of AWS's Trn1. The best scores were found by trying
every group and every ring, and with more than eight GPUs by keeping the best of all that have the same GPUs left.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Links = list[list[str]]  # links[i][j] between GPU i and GPU j, "X" if i is j
MAX_READS = 5_000_000
"""How many links a part may read for one computer."""

Score = tuple[int, int]

PCIE = ("SYS", "NODE", "PHB", "PXB", "PIX")  # from the longest path to the shortest
ASSUMED_GB_PER_S = {"SYS": 10.0, "NODE": 10.0, "PHB": 10.0, "PXB": 15.75, "PIX": 15.75}
"""Of PCIe 3 x16 through switches; paths through a processor are slower, by how much depends on it. An NVLink has 25 GB/s."""
_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""
_CUBE = """
 X  NV1 NV1 NV2 NV2 SYS SYS SYS
NV1  X  NV2 NV1 SYS NV2 SYS SYS
NV1 NV2  X  NV2 SYS SYS NV1 SYS
NV2 NV1 NV2  X  SYS SYS SYS NV1
NV2 SYS SYS SYS  X  NV1 NV1 NV2
SYS NV2 SYS SYS NV1  X  NV2 NV1
SYS SYS NV1 SYS NV1 NV2  X  NV2
SYS SYS SYS NV1 NV2 NV1 NV2  X
"""


class TooManyReadsError(Exception):
    """A part has read more than `MAX_READS` links of one computer."""


def count_reads(links: Links) -> Links:
    """Return a copy of the links that raises TooManyReadsError when too many of them are read."""
    reads = itertools.count(1)

    class Row(list[str]):
        def __getitem__(self, index: Any) -> Any:
            if next(reads) > MAX_READS:
                raise TooManyReadsError(f"more than {MAX_READS:,} links were read")
            return super().__getitem__(index)

    return [Row(row) for row in links]


@dataclass(frozen=True)
class Best:
    """The best possible scores of a computer: of its groups by their size, and of a ring through all its GPUs."""

    groups: Mapping[int, Score]
    ring: Score


@dataclass(frozen=True)
class Listing:
    """A computer: the links between its GPUs, the number of network cards in the same table, and its best scores."""

    name: str
    links: Links
    best: Best
    nics: int = 0

    @property
    def text(self) -> str:
        """Return the output of `nvidia-smi topo -m`: rows and columns of GPUs and network cards, and the legend."""
        count = len(self.links)
        names = [f"GPU{place}" for place in range(count)] + [f"NIC{place}" for place in range(self.nics)]
        head = ["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]
        rows = [head] + [[names[row], *self._cells(row), *self._affinity(row)] for row in range(len(names))]
        cards = "".join(f"  NIC{place}: mlx5_{place}\n" for place in range(self.nics))
        return "\n".join("\t".join(row) for row in rows) + "\n" + _LEGEND + (f"\nNIC Legend:\n\n{cards}" if cards else "")

    def _cells(self, row: int) -> list[str]:
        count = len(self.links)
        columns = range(count + self.nics)
        return [
            f" {self.links[row][at]} " if row == at < count else " X " if row == at else self._link(row, at) for at in columns
        ]

    def _link(self, row: int, column: int) -> str:
        count = len(self.links)
        if max(row, column) < count:
            return self.links[row][column]
        if min(row, column) >= count:
            return "NODE"
        gpu, card = min(row, column), max(row, column) - count
        return "PIX" if gpu * self.nics // count == card else "SYS"

    def _affinity(self, row: int) -> list[str]:
        count = len(self.links)
        if row >= count:
            return []
        half = 2 * row // count
        return [f"{24 * half}-{24 * half + 23}", str(half), "N/A"]


_BEST_OF_CUBE = Best({2: (102, -4), 4: (101, -6)}, (102, -8))


def rank_link(link: str) -> int:
    """Return the rank of a link: the higher, the faster. NVLinks are above all PCIe links: the more, the higher."""
    return 100 + int(link[2:]) if link.startswith("NV") else 1 + PCIE.index(link)


def score(links: Links, pairs: Iterable[tuple[int, int]]) -> Score:
    """Return the score of pairs of GPUs, the higher the better: the rank of their slowest link, then how few links have that
    rank."""
    speeds = [rank_link(links[a][b]) for a, b in pairs]
    return (min(speeds), -speeds.count(min(speeds))) if speeds else (1000, 0)


def group_score(links: Links, groups: Sequence[Sequence[int]]) -> Score:
    """Return the score of all links inside the groups."""
    return score(links, (pair for group in groups for pair in itertools.combinations(group, 2)))


def ring_score(links: Links, ring: Sequence[int]) -> Score:
    """Return the score of all hops of a ring, including the hop from its last GPU to its first."""
    return score(links, zip(ring, [*ring[1:], ring[0]], strict=True))


def name_score(links: Links, value: Score) -> str:
    """Return a score in words: "2 x SYS"."""
    names = {rank_link(link): link for row in links for link in row if link != "X"}
    return f"{-value[1]} x {names[value[0]]}"


def ring_speed(links: Links, ring: Sequence[int]) -> float:
    """Return the GB/s, in one direction, of the slowest hop of a ring, by assumed speeds of each kind of link.

    Hops between the sockets share one link, half of them in each direction.
    """
    hops = [links[a][b] for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
    speeds = ASSUMED_GB_PER_S | {"SYS": ASSUMED_GB_PER_S["SYS"] / max(1, hops.count("SYS") / 2)}
    return min(25.0 * int(link[2:]) if link.startswith("NV") else speeds[link] for link in hops)


def listings(puzzle: int) -> list[Listing]:
    """Return six computers: four that exist, one that follows from `puzzle`, and one with 16 GPUs."""
    return [
        Listing("8 x H100 with NVSwitch", _matrix(8, lambda _a, _b: "NV18"), Best({2: (118, -4), 4: (118, -12)}, (118, -8)), 4),
        Listing("hybrid cube, 8 x V100", _cube(), _BEST_OF_CUBE, 4),
        Listing("g5.12xlarge, 4 x A10G", _matrix(4, lambda _a, _b: "PHB"), Best({2: (3, -2), 4: (3, -6)}, (3, -4))),
        Listing("two sockets, 2 x 4", _matrix(8, _link_sockets), Best({2: (5, -4), 4: (5, -12)}, (1, -2)), 2),
        compose(puzzle),
        compose_hypercube(puzzle),
    ]


def compose(puzzle: int) -> Listing:
    """Return a computer with eight GPUs on two sockets. The GPUs' numbers say nothing about their links.

    It has pairs linked by NVLinks, a hybrid cube, or two islands joined by two NVLinks. The same puzzle always has the same
    computer.
    """
    chance = random.Random(puzzle)
    kinds = [
        (_pairs("NV2", "NV12"), Best({2: (112, -4), 4: (102, -8)}, (1, -2))),
        (_pairs("PXB", "NV4"), Best({2: (104, -4), 4: (4, -8)}, (1, -2))),
        (_pairs("NODE", "NV2"), Best({2: (102, -4), 4: (2, -8)}, (1, -2))),
        (_cube(), _BEST_OF_CUBE),
        (_islands(), Best({2: (102, -4), 4: (102, -12)}, (101, -1))),
    ]
    (links, best), order = kinds[puzzle % len(kinds)], chance.sample(range(8), 8)
    return Listing(f"puzzle {puzzle}", _matrix(8, lambda a, b: links[order[a]][order[b]]), best, chance.choice([0, 1, 2]))


def compose_hypercube(puzzle: int) -> Listing:
    """Return a computer with 16 GPUs in a hypercube, in which three links are down.

    Each GPU has two NVLinks to two others, and one NVLink to two more. GPU 6 has lost both of its fast links. So a ring that
    always goes to the nearest GPU is never the best one in the first 50 puzzles, wherever it begins.
    """
    order = random.Random(puzzle + 16).sample(range(16), 16)
    kinds, down = {1: "NV2", 2: "NV2", 4: "NV1", 8: "NV1"}, [{4, 6}, {6, 7}, {10, 14}]
    link = lambda a, b: "SYS" if {a, b} in down else kinds.get(a ^ b, "SYS")  # noqa: E731
    links = _matrix(16, lambda a, b: link(order[a], order[b]))
    return Listing("hypercube, 16 GPUs, 3 links down", links, Best({2: (101, -2), 4: (1, -9)}, (101, -6)), 4)


def compose_switches(puzzle: int) -> Listing:
    """Return a computer with 12 GPUs: on each of two sockets two switches, with three GPUs on each."""
    order = random.Random(puzzle + 12).sample(range(12), 12)
    link = lambda a, b: "PIX" if a // 3 == b // 3 else "NODE" if a // 6 == b // 6 else "SYS"  # noqa: E731
    return Listing("four switches, 12 GPUs", _matrix(12, lambda a, b: link(order[a], order[b])),
                   Best({2: (2, -2), 4: (1, -4)}, (1, -2)))  # fmt: skip


def _link_sockets(a: int, b: int) -> str:
    return "PIX" if a // 4 == b // 4 else "SYS"


def _pairs(near: str, bridge: str) -> Links:
    return _matrix(8, lambda a, b: bridge if a // 2 == b // 2 else near if a // 4 == b // 4 else "SYS")


def _cube() -> Links:
    return [row.split() for row in _CUBE.strip().splitlines()]


def _islands() -> Links:
    joined = {(0, 4): "NV4", (1, 5): "NV1"}
    return _matrix(8, lambda a, b: "NV2" if a // 4 == b // 4 else joined.get((min(a, b), max(a, b)), "SYS"))


def _matrix(count: int, link: Callable[[int, int], str]) -> Links:
    return [["X" if a == b else link(a, b) for b in range(count)] for a in range(count)]
