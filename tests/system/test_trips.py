"""Round trips of the commands, one after the other: what a lab on another continent makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.trips import Counted, count_on_hosts, count_on_simulated_nodes

pytestmark = [pytest.mark.system, pytest.mark.slow]

RTT_S = 0.2


@pytest.mark.parametrize("count_trips", [count_on_simulated_nodes, count_on_hosts])
def test_commands_take_few_round_trips_on_one_connection(
    tmp_path: Path, count_trips: Callable[[Path, float], Iterator[Counted]]
) -> None:
    rows = list(count_trips(tmp_path, RTT_S))
    table = "\n".join(f"{row.command:28} {row.trips:3} round trips, limit {row.limit}" for row in rows)
    for row in rows:
        assert 0 < row.trips <= (row.limit or row.trips), f"{row.command}, of\n{table}"
        assert row.connections == 1, f"{row.command} connected to one node {row.connections} times"
