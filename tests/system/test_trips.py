"""Round trips of the commands, one after the other: what a lab on another continent makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trips import AS_WITH_ONE, Counted, count_on_hosts, count_on_simulated_nodes, count_under_slurm

pytestmark = [pytest.mark.system, pytest.mark.slow]

RTT_S = 0.5
MAX_LATE = 3
"""Runs that end beside each other are as many conversations, which the proxy sees as one. On a busy computer one of them may be
later than the others by a round trip or more. One conversation after the other would be many more."""


def _check(rows: list[Counted]) -> None:
    told = "\n".join(f"{row.command:28} {row.trips:3} round trips, limit {row.limit}" for row in rows)
    for row in rows:
        assert row.trips > 0, f"the proxy saw nothing of {row.command}"
        assert row.trips <= (row.limit or row.trips), f"{row.command}: {row.trips}, of\n{told}"
        assert row.connections == 1, f"{row.command} connected to one node {row.connections} times"
    trips = {row.command: row.trips for row in rows}
    for single, several in AS_WITH_ONE:
        assert trips.get(several, 0) <= trips.get(single, 0) + MAX_LATE, f"{several}, of\n{told}"


def test_simulated_nodes_are_asked_as_little_as_can_be(tmp_path: Path) -> None:
    rows = list(count_on_simulated_nodes(tmp_path, RTT_S))
    _check(rows)


def test_machines_of_ones_own_are_asked_as_little_as_can_be(tmp_path: Path) -> None:
    _check(list(count_on_hosts(tmp_path, RTT_S)))


@pytest.mark.timeout(600)  # two clusters and 35 runs, of which Slurm begins three at a time
def test_the_head_of_a_cluster_is_asked_as_little_as_can_be(tmp_path: Path) -> None:
    _check(list(count_under_slurm(tmp_path, RTT_S)))
