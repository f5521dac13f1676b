"""Tokens a second that a GPU can reach at most: by its memory, by its arithmetic, and of GPUs that are not here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("name", "model", "batch", "ceiling"),
    [
        ("Tesla T4", "opt-1.3b", 1, 121.6),  # 320 GB/s over 2.63 GB, a little less for the cache of 256 tokens
        ("NVIDIA L4", "opt-1.3b", 1, 114.0),
        ("Tesla T4", "gpt2", 1, 1286),
        ("NVIDIA L4", "gpt2", 1, 1205),
    ],
)
def test_ceiling_of_one_at_a_time_is_the_memory(
    shared_files: Any, monkeypatch: pytest.MonkeyPatch, name: str, model: str, batch: int, ceiling: float
) -> None:
    limit = on(shared_files, monkeypatch, name, model).find(batch, 128, 128)
    assert limit.tok_per_s == pytest.approx(ceiling, rel=0.04)
    assert "reads all weights" in limit.reason


def test_ceiling_of_a_large_batch_is_the_arithmetic(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = on(shared_files, monkeypatch, "Tesla T4", "opt-1.3b")
    single_speed, middle_speed, large_speed = (limits.find(batch, 1, 2).tok_per_s for batch in (1, 64, 512))
    assert large_speed == pytest.approx(65e12 / (2 * 1_315_758_080))
    assert large_speed > middle_speed > single_speed


def test_ceiling_of_an_unknown_gpu_is_none(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = on(shared_files, monkeypatch, "NVIDIA Tomorrow 1000", "gpt2", capability=(99, 0)).find(1, 128, 128)
    assert unknown.tok_per_s is None
    assert shared_files.ceilings.limit_to_possible(1e9, unknown) == 1e9


def test_limit_to_possible_is_none_above_the_ceiling(shared_files: Any) -> None:
    ceiling = shared_files.ceilings.Ceiling(122.0, "a reason")
    assert shared_files.ceilings.limit_to_possible(200.0, ceiling) is None, "200 tokens/s of opt-1.3b on a T4, one at a time"
    assert shared_files.ceilings.limit_to_possible(90.0, ceiling) == 90.0


def test_ceiling_of_a_processor_is_measured_here(shared_files: Any) -> None:
    limits = shared_files.ceilings.Ceilings(shared_files.language_models.MODELS["tiny"], shared_files.torch.device("cpu"))
    assert limits.find(1, 32, 24).tok_per_s == limits.find(8, 32, 24).tok_per_s > 0
    assert "measured here" in limits.find(1, 32, 24).reason


def on(shared_files: Any, monkeypatch: pytest.MonkeyPatch, name: str, model: str, capability: tuple[int, int] = (7, 5)) -> Any:
    props = SimpleNamespace(
        major=capability[0], minor=capability[1], multi_processor_count=40, clock_rate=1_590_000, memory_clock_rate=5_001_000,
        memory_bus_width=256,
    )  # fmt: skip
    monkeypatch.setattr(shared_files.torch.cuda, "get_device_name", lambda _: name)
    monkeypatch.setattr(shared_files.torch.cuda, "get_device_properties", lambda _: props)
    return shared_files.ceilings.Ceilings(shared_files.language_models.MODELS[model], shared_files.torch.device("cuda", 0))
