"""The best time of a pipeline on a real GPU: by its copy engines and its link."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tests.parts import need_module
from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def streams() -> ModuleType:
    return beside_the_script("05-gpu-programming", "streams")


@pytest.fixture
def gpu_streams(streams: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    need_module("torch")
    monkeypatch.setitem(sys.modules, "streams", streams)
    return beside_the_script("05-gpu-programming", "gpu_streams")


def test_find_best_ms_shares_a_single_copy_engine(gpu_streams: ModuleType) -> None:
    took = {"copy in": 2.0, "compute": 3.0, "copy out": 2.0}
    assert gpu_streams.find_best_ms(8, took, 3, 2) == gpu_streams.find_best_ms(8, took, 3, None) == 8 * 3 + 4
    assert gpu_streams.find_best_ms(8, took, 3, 1) == 8 * 4 + 3
