"""The table of GPUs: what it says agrees with the formulas behind it, and no name is taken for another."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.unit.exercises.scripts import beside_the_script

gpus = beside_the_script("shared", "gpus")
EVERY = {gpu.gpu: gpu for gpu in gpus.table()}


def test_formulas_give_the_golden_values() -> None:
    assert gpus.tensor_peak_tflops(40, 512, 1.59) == pytest.approx(65.13, abs=0.005)
    assert gpus.memory_gb_per_s(5_001_000, 256) == pytest.approx(320.06, abs=0.005)
    assert gpus.matmul_tflops(4096, 5.73e-3) == pytest.approx(23.99, abs=0.005)
    assert gpus.decode_ceiling(1, 320, 2.63e9) == pytest.approx(121.7, abs=0.05)
    assert gpus.decode_ceiling(1, 300, 2.63e9) == pytest.approx(114.1, abs=0.05)
    assert gpus.compute_ceiling(24, 1.3e9) == pytest.approx(9_231, abs=1)


@pytest.mark.parametrize("name", [name for name, gpu in EVERY.items() if gpu.boost_ghz and gpu.tensor_fma_per_clock])
def test_peaks_of_the_table_follow_from_processors_and_clock(name: str) -> None:
    gpu = EVERY[name]
    assert gpus.tensor_peak_tflops(gpu.sms, gpu.tensor_fma_per_clock, gpu.boost_ghz) == pytest.approx(gpu.fp16, rel=0.015)
    clock = 1.98 if name in {"H100 SXM", "H200"} else gpu.boost_ghz  # what its note says
    assert gpus.fp32_peak_tflops(gpu.sms, gpu.cores_per_sm, clock) == pytest.approx(gpu.fp32, rel=0.01)


@pytest.mark.parametrize("name", list(EVERY))
def test_bandwidth_of_the_table_follows_from_bus_and_memory_clock(name: str) -> None:
    gpu = EVERY[name]
    tolerance = 0.03  # what 4.1 allows; the H200's clock makes 2.4 % more than its data sheet says
    assert gpus.memory_gb_per_s(1e3 * gpu.memory_mhz, gpu.bus_bits) == pytest.approx(gpu.gb_per_s, rel=tolerance)


@pytest.mark.parametrize("name", ["Tesla T4", "tesla  t4", "NVIDIA L4", "NVIDIA L40", "NVIDIA A10", "NVIDIA A100-SXM4-80GB"])
def test_find_takes_the_exact_name(name: str) -> None:
    assert gpus.find(name) is not None


@pytest.mark.parametrize(
    "name", ["", "T4", "NVIDIA L400", "NVIDIA A100", "NVIDIA GeForce RTX 4090 D", "Tesla T40", "cpu (x86_64)"]
)
def test_find_is_none_for_another_name(name: str) -> None:
    assert gpus.find(name) is None


def test_peak_tflops_is_none_for_what_the_hardware_cannot() -> None:
    assert EVERY["T4"].peak_tflops("bfloat16") is None
    assert EVERY["T4"].peak_tflops("tf32") is None
    assert EVERY["L4"].peak_tflops("bfloat16") == 121
    assert EVERY["T4"].peak_tflops("float64") is None, "the table has no such column"


@pytest.mark.parametrize("name", [name for name, gpu in EVERY.items() if gpu.boost_ghz])
def test_derive_is_never_below_a_data_sheet(name: str) -> None:
    gpu = EVERY[name]
    major, minor = map(int, gpu.capability.split("."))
    props = SimpleNamespace(
        major=major, minor=minor, multi_processor_count=gpu.sms, memory_clock_rate=1e3 * gpu.memory_mhz,
        memory_bus_width=gpu.bus_bits,
    )  # fmt: skip
    derived = gpus.derive(props, 1e3 * gpu.boost_ghz)
    for dtype in gpus.DTYPES:
        if peak := gpu.peak_tflops(dtype):
            assert derived.tflops[dtype] >= peak * 0.9999
    assert derived.gb_per_s == pytest.approx(gpu.gb_per_s, rel=0.03)


def test_derive_is_none_for_an_unknown_generation_or_clock() -> None:
    props = SimpleNamespace(major=5, minor=2, multi_processor_count=16)
    assert gpus.derive(props, 1_000) is None
    assert gpus.derive(SimpleNamespace(major=7, minor=5, multi_processor_count=40), None) is None
    assert gpus.derive(SimpleNamespace(major=7, minor=5, multi_processor_count=40), 1_590).tflops["bfloat16"] is None
