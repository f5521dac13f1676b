"""A GPU's specifications from what it says, with GPUs that are not here."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

gpus = beside_the_script("shared", "gpus")


@pytest.fixture
def specs(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "gpus", gpus)
    return beside_the_script("04-benchmarking", "specs")


T4 = SimpleNamespace(
    name="Tesla T4", major=7, minor=5, multi_processor_count=40, total_memory=15_655_829_504, clock_rate=1_590_000,
    memory_clock_rate=5_001_000, memory_bus_width=256, L2_cache_size=4 << 20,
)  # fmt: skip
ASKED = {
    "driver_version": "580.95.05",
    "power.limit": 70.0,
    "pcie.link.gen.max": 3,
    "pcie.link.width.max": 16,
    "clocks.max.sm": 1590,
}
GIB, MIB = 1 << 30, 1 << 20
# What such devices say of themselves: published prints of their drivers.
PRINTED = {
    "NVIDIA H100 80GB HBM3": ((9, 0), 132, 81_089 * MIB, 1_980, 2_619, 5120, 50, 700.0),
    "Tesla V100-SXM2-32GB": ((7, 0), 80, 32_480 * MIB, 1_530, 877, 4096, 6, 300.0),
    "NVIDIA GeForce RTX 4090": ((8, 9), 128, 24_563 * MIB, 3_105, 10_501, 384, 72, 450.0),
}


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["spec"]: row for row in rows}


def test_rows_of_a_t4_agree_with_its_data_sheet(specs: Any) -> None:
    rows = by_name(specs.rows(T4, ASKED, gpus.find(T4.name)))
    assert rows["memory bandwidth, derived"]["device"] == pytest.approx(320.06, abs=0.005)
    assert rows["float32 peak, derived"]["device"] == pytest.approx(8.14, abs=0.01)
    assert rows["cores, derived"]["device"] == 2560
    assert rows["formats in hardware"]["device"] == "fp16", "Turing imitates bfloat16"
    assert rows["PCIe, at most"]["device"] == "PCIe 3 x16"
    assert {row["agrees"] for row in rows.values()} == {True, None}


@pytest.mark.parametrize("name", list(PRINTED))
def test_rows_of_a_large_gpu_agree_with_its_data_sheet(specs: Any, name: str) -> None:
    (major, minor), processors, memory, mhz, memory_mhz, bus, cache_mib, watts = PRINTED[name]
    device = SimpleNamespace(
        name=name, major=major, minor=minor, multi_processor_count=processors, total_memory=memory,
        memory_clock_rate=memory_mhz * 1000, memory_bus_width=bus, L2_cache_size=cache_mib * MIB,
    )  # fmt: skip
    rows = specs.rows(device, {"power.limit": watts, "clocks.max.sm": mhz}, gpus.find(name))
    assert [row for row in rows if row["agrees"] is False] == []


def test_rows_of_an_unknown_gpu_are_compared_with_nothing(specs: Any) -> None:
    future_gpu = SimpleNamespace(**{**vars(T4), "name": "NVIDIA Tomorrow 1000"})
    rows = by_name(specs.rows(future_gpu, ASKED, gpus.find(future_gpu.name)))
    assert rows["float32 peak, derived"]["device"] == pytest.approx(8.14, abs=0.01)
    assert rows["float16 peak, derived: at most"]["device"] == pytest.approx(65, rel=0.01), "as many units as a T4 has"
    assert all(row["sheet"] is None and row["agrees"] is None for row in rows.values())
    older = SimpleNamespace(**{**vars(T4), "name": "Tesla M60", "major": 5, "minor": 2})
    assert "float16 peak, derived: at most" not in by_name(specs.rows(older, ASKED, None)), "nothing is known of its generation"


def test_rows_are_empty_if_the_driver_does_not_tell(specs: Any) -> None:
    bare = SimpleNamespace(name="Tesla T4", major=7, minor=5, multi_processor_count=40, total_memory=15_655_829_504)
    rows = by_name(specs.rows(bare, {}, gpus.find(bare.name)))
    empty = ("clock, highest", "float32 peak, derived", "memory bandwidth, derived", "L2 cache", "power limit", "PCIe, at most")
    assert [rows[name]["device"] for name in empty] == 6 * [None]


def test_rows_disagree_if_the_power_limit_is_below_the_sheet(specs: Any) -> None:
    rows = by_name(specs.rows(T4, {**ASKED, "power.limit": 60.0}, gpus.find(T4.name)))
    assert rows["power limit"]["agrees"] is False
