"""Round trips of `deploy`, `run` and `cancel`, one after the other: from another continent each costs a tenth of a second."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Row
from tests.trips import LIMITS, count_on_simulated_nodes

RTT_S = 0.2


def measure() -> Iterator[Row]:
    """Yield each command on a lab of two simulated nodes."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder:
        for counted in count_on_simulated_nodes(Path(folder), RTT_S):
            limit = LIMITS[counted.command]
            yield Row(what=f"{counted.command}, 2 nodes, round trips", ours=counted.trips, unit="trips", limit=limit)
