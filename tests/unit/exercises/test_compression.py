"""The arithmetic of compressed gradients, with numbers worked out by hand."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit.exercises.scripts import beside_the_script

SHAPES = [(512, 784), (512,), (10, 512), (10,)]


@pytest.fixture(scope="module")
def compression() -> ModuleType:
    return beside_the_script("03-parallel-computing", "compression")


def test_bytes_of_each_way_to_compress(compression: ModuleType) -> None:
    elements = 512 * 784 + 512 + 5120 + 10
    assert compression.plain_bytes(SHAPES) == 4 * elements
    assert compression.half_bytes(SHAPES) == 2 * compression.byte_bytes(SHAPES) == 2 * elements
    assert compression.power_sgd_bytes(SHAPES, 1) == 4 * (512 + 784 + 512 + 522 + 10)
    assert compression.power_sgd_bytes(SHAPES, 2) == 4 * (2 * (512 + 784) + 512 + 2 * 522 + 10)


def test_pays_below_gbps_if_compressing_takes_as_long_as_sending(compression: ModuleType) -> None:
    assert compression.pays_below_gbps(1_250_000, 1.0) == pytest.approx(10), "1.25 MB in 1 ms is 10 Gbit/s"
    assert compression.pays_below_gbps(1_250_000, -0.1) is None
    assert compression.pays_below_gbps(0, 1.0) is None


def test_judge_compares_a_row_with_the_plain_one(compression: ModuleType) -> None:
    plain = {
        "bytes_per_step": 2_000_000,
        "bytes_by_formula": 2_000_000,
        "median_ms": 5.0,
        "without_network_ms": 4.0,
        "loss_after": 0.5,
        "gathers": False,
    }
    row = plain | {
        "bytes_per_step": 750_000,
        "bytes_by_formula": 750_008,
        "median_ms": 5.5,
        "without_network_ms": 5.0,
        "loss_after": 0.6,
    }
    judgement = compression.judge(row, plain, 2)
    assert judgement["times_smaller"] == pytest.approx(2.6667, abs=1e-4)
    assert (judgement["bytes_off"], judgement["compressing_ms"], judgement["communication_ms"]) == (8, 1.0, 0.5)
    assert judgement["pays_below_gbps"] == pytest.approx(10)
    assert judgement["loss_gap_percent"] == pytest.approx(20)
    assert compression.judge(plain, plain, 2)["pays_below_gbps"] is None
    assert compression.count_wire_bytes(1, 8, gathers=True) == compression.count_wire_bytes(4, 8) == 7
