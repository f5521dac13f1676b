"""The kernels below a roofline: their intensities, their results, and the size of their arrays."""

from __future__ import annotations

from types import ModuleType

import pytest
from docs.pictures import limits

from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def roof_kernels(torch: ModuleType) -> ModuleType:
    return beside_the_script("05-gpu-programming", "roof_kernels")


def test_make_kernels_have_the_intensities_of_the_lesson(torch: ModuleType, roof_kernels: ModuleType) -> None:
    kernels = roof_kernels.make_kernels(roof_kernels.make_arrays(256, torch.device("cpu"), 0), 16, 32)
    intensities = {kernel.name: kernel.flop_per_byte for kernel in kernels}
    expected = {
        "saxpy": 1 / 6,
        "layer norm": 1,
        "stencil": 0.75,
        "sparse x vector": 1 / 7,
        "FFT 4096": 3.75,
        "all-pairs forces": 5 * 1024 / 7,
        "GEMM 16": 16 / 6,
        "GEMM 32": 32 / 6,
    }
    assert intensities == pytest.approx(expected)
    assert {name: dict(limits.KERNELS)[name] for name in ("sparse", "FFT", "forces")} == pytest.approx(
        {"sparse": expected["sparse x vector"], "FFT": expected["FFT 4096"], "forces": expected["all-pairs forces"]}
    )
