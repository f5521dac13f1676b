"""Where the ranks of a later life meet: under keys of their own in the store that torchrun keeps for all lives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.ports import take_port
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch
WAIT = timedelta(seconds=20)


@pytest.fixture
def ranks() -> Any:
    return beside_the_script("shared", "ranks")


def test_the_first_life_finds_its_way_by_the_environment(ranks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT", raising=False)
    assert ranks.meeting_point(WAIT) == {}
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert ranks.meeting_point(WAIT) == {}


def test_a_later_life_reads_nothing_that_an_earlier_one_has_left(ranks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    port = take_port()
    agent = ranks.dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False, timeout=WAIT)
    agent.set("address of rank 1", "a dead process")
    variables = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    for name, value in {**variables, "TORCHELASTIC_RESTART_COUNT": "2"}.items():
        monkeypatch.setenv(name, value)
    point = ranks.meeting_point(WAIT)
    assert (point["rank"], point["world_size"]) == (1, 2)
    assert not point["store"].check(["address of rank 1"])
    point["store"].set("address of rank 1", "a living process")
    assert agent.get("address of rank 1") == b"a dead process"
    assert agent.get("life-2/address of rank 1") == b"a living process"
