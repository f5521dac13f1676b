from __future__ import annotations

from gpucourse.remote.agent.drill import read_load_per_core


def test_read_load_per_core_is_at_least_one() -> None:
    assert read_load_per_core("0.52 0.58 0.59 7/512 4711", 2) == 3.0
    assert read_load_per_core("9.99 0.58 0.59 1/512 4711", 2) == 1.0, "only the process that asks"
    assert read_load_per_core("nonsense", 2) == 1.0
