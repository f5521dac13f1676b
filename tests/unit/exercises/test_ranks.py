"""What the scripts of several ranks share: joining, and what all ranks agree on."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")


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
    with pytest.raises(SystemExit, match="rank 3 is process 2 of its node, with 1 GPUs: start one process per GPU") as raised:
        ranks.join()
    assert "GPUCOURSE_BACKEND=gloo" in str(raised.value)


def test_error_of_any_rank_counts_and_nan_is_the_worst(ranks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = ranks.torch
    world = ranks.World(rank=0, size=2, device=torch.device("cpu"), waiting_room=None)
    right, tensor = torch.tensor([2.0, -4.0]), torch.tensor([2.0, -3.0])
    for other, expected in ((0.125, 0.25), (0.5, 0.5)):
        monkeypatch.setattr(ranks.World, "gather", lambda _, mine, other=other: [mine, other])
        assert world.error(tensor, right) == expected
    monkeypatch.setattr(ranks.World, "gather", lambda _, mine: [0.1, mine])
    assert str(world.error(torch.tensor([float("nan"), 1.0]), right)) == "nan"
