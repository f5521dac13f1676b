"""Listings of links between GPUs, and the best groups and rings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

topology = beside_the_script("07-hpc-systems", "topology")


def divide(members: tuple[int, ...], size: int) -> Iterator[list[tuple[int, ...]]]:
    if not members:
        yield []
    for group in itertools.combinations(members, size):
        if group[0] == members[0]:
            yield from ([group, *groups] for groups in divide(tuple(gpu for gpu in members if gpu not in group), size))


@pytest.mark.parametrize(
    "listing", [*topology.listings(1)[:5], *map(topology.compose, range(2, 6))], ids=lambda listing: listing.name
)
def test_listing_has_the_best_scores_of_all_groups_and_rings(listing: Any) -> None:
    gpus = tuple(range(len(listing.links)))
    for size in (2, 4):
        assert listing.best.groups[size] == max(topology.group_score(listing.links, groups) for groups in divide(gpus, size))
    assert listing.best.ring == max(
        topology.ring_score(listing.links, (0, *order)) for order in itertools.permutations(gpus[1:])
    )


@pytest.mark.parametrize(
    "listing", [topology.compose_switches(1), topology.compose_hypercube(1)], ids=lambda listing: listing.name
)
def test_large_listing_has_the_scores_that_the_solution_finds(listing: Any) -> None:
    solution = beside_the_script("07-hpc-systems/solutions", "my_topology")
    for size in (2, 4):
        assert listing.best.groups[size] == topology.group_score(listing.links, solution.find_groups(listing.links, size))
    assert listing.best.ring == topology.ring_score(listing.links, solution.find_ring(listing.links))


def test_hypercube_has_no_best_ring_that_goes_to_the_nearest_gpu() -> None:
    for puzzle in range(1, 11):
        listing = topology.compose_hypercube(puzzle)
        for first in range(16):
            ring, remaining = [first], set(range(16)) - {first}
            while remaining:
                ring.append(max(sorted(remaining), key=lambda gpu: topology.rank_link(listing.links[ring[-1]][gpu])))
                remaining.remove(ring[-1])
            assert topology.ring_score(listing.links, ring) < listing.best.ring


def test_count_reads_raises_an_error_after_too_many_reads() -> None:
    links = topology.count_reads([["X", "NV1"], ["NV1", "X"]])
    for _ in range(topology.MAX_READS):
        links[0][1]
    with pytest.raises(topology.TooManyReadsError):
        links[1][0]


def test_ring_score_of_a_hybrid_cube_shows_that_its_numbers_are_no_order() -> None:
    cube = topology.listings(1)[1]
    assert topology.name_score(cube.links, cube.best.ring) == "8 x NV2"
    assert topology.name_score(cube.links, topology.ring_score(cube.links, range(8))) == "2 x SYS"


def test_ring_speed_is_that_of_the_slowest_hop_and_crossings_share_a_link() -> None:
    cube, sockets = (topology.listings(1)[number].links for number in (1, 3))
    assert topology.ring_speed(cube, [0, 3, 2, 1, 5, 6, 7, 4]) == 50
    assert topology.ring_speed(sockets, range(8)) == 10
    assert topology.ring_speed(sockets, [0, 4, 1, 5, 2, 6, 3, 7]) == 10 / 4
