"""Listings of links between GPUs, and the best ring."""

from __future__ import annotations

from tests.unit.exercises.scripts import beside_the_script

topology = beside_the_script("07-hpc-systems", "topology")


def test_best_ring_score_of_a_hybrid_cube_has_two_nvlinks_in_each_hop() -> None:
    cube = topology.listings(1)[1].links
    assert topology.name_score(cube, topology.best_ring_score(cube)) == "8 x NV2"
    assert topology.name_score(cube, topology.ring_score(cube, range(8))) == "2 x SYS"
