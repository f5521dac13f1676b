"""What the scripts of several ranks share: joining, and what all ranks agree on."""

from __future__ import annotations

from datetime import timedelta
from types import ModuleType

import pytest

from tests.parts import needs_module
from tests.ports import take_port
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")
WAIT = timedelta(seconds=20)


@pytest.fixture(scope="module")
def ranks() -> ModuleType:
    return beside_the_script("shared", "ranks")


def test_join_ends_with_a_sentence_if_there_are_more_processes_than_gpus(
    ranks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(ranks.torch.cuda, "device_count", lambda: 1)
    monkeypatch.delenv("GPUCOURSE_BACKEND", raising=False)
    for name, value in {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match="rank 3 is process 2 of its node, with 1 GPUs: start one process per GPU") as error:
        ranks.join()
    assert "GPUCOURSE_BACKEND=gloo" in str(error.value)


def test_error_of_any_rank_counts_and_nan_is_the_worst(ranks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = ranks.torch
    world = ranks.World(rank=0, size=2, device=torch.device("cpu"), waiting_room=None)
    reference, tensor = torch.tensor([2.0, -4.0]), torch.tensor([2.0, -3.0])
    for peer_error, expected in ((0.125, 0.25), (0.5, 0.5)):
        monkeypatch.setattr(ranks.World, "gather", lambda _, mine, other=peer_error: [mine, other])
        assert world.error(tensor, reference) == expected
    monkeypatch.setattr(ranks.World, "gather", lambda _, mine: [0.1, mine])
    assert str(world.error(torch.tensor([float("nan"), 1.0]), reference)) == "nan"


def test_meeting_point_of_the_first_start_is_the_environment(ranks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT", raising=False)
    assert ranks.meeting_point(WAIT) == {}
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert ranks.meeting_point(WAIT) == {}


def test_meeting_point_of_a_later_start_reads_nothing_of_an_earlier_one(
    ranks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
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
