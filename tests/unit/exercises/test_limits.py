"""Module 5's limits: lengths and counts of transforms, signals in which a ring finds nothing, bytes and intensities."""

from __future__ import annotations

import math
from types import ModuleType

import pytest
from docs.pictures import limits

from tests.parts import need_module
from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    return need_module("torch")


@pytest.fixture(scope="module")
def transforms(torch: ModuleType) -> ModuleType:
    return beside_the_script("05-gpu-programming", "transforms")


@pytest.fixture(scope="module")
def traffic(torch: ModuleType) -> ModuleType:
    return beside_the_script("05-gpu-programming", "traffic")


@pytest.fixture(scope="module")
def roof_kernels(torch: ModuleType) -> ModuleType:
    return beside_the_script("05-gpu-programming", "roof_kernels")


@pytest.mark.parametrize(("length", "factor"), [(1, 1), (2, 2), (1123, 1123), (1124, 281), (1125, 5), (4096, 2), (10_403, 103)])
def test_the_largest_prime_factor(transforms: ModuleType, length: int, factor: int) -> None:
    assert transforms.largest_prime_factor(length) == factor


def test_a_length_of_no_points_is_refused(transforms: ModuleType) -> None:
    with pytest.raises(ValueError, match="at least one point"):
        transforms.largest_prime_factor(0)


@pytest.mark.parametrize(("least", "length"), [(1, 1), (11, 12), (1123, 1125), (4219, 4320), (2**20 + 1, 1_049_760)])
def test_the_shortest_fast_length(transforms: ModuleType, least: int, length: int) -> None:
    assert transforms.find_fast_length(least) == length
    assert all(transforms.largest_prime_factor(shorter) > 7 for shorter in range(least, length))


def test_a_real_transform_counts_half_of_a_complex_one(transforms: ModuleType) -> None:
    assert transforms.real_transform_flops(1024) == 2.5 * 1024 * 10
    assert transforms.real_transform_flops(1) == 0


def test_transforms_are_counted_by_rows_calls_and_lengths(torch: ModuleType, transforms: ModuleType) -> None:
    signals = torch.randn(6, 50)
    with transforms.TransformCounter() as counter:
        spectra = torch.fft.rfft(signals, 60)
        torch.fft.irfft(spectra * torch.fft.rfft(signals[0, :7], 60).conj(), 60)
        torch.fft.ifft(torch.fft.fft(signals, 64))
    assert (counter.forward_calls, counter.forward_rows) == (3, 6 + 1 + 6)
    assert (counter.inverse_calls, counter.inverse_rows) == (2, 6 + 6)
    assert (counter.lengths, counter.template_transforms) == ({60, 64}, 1)


def test_a_ring_finds_no_pulse_and_the_direct_sum_all(torch: ModuleType, transforms: ModuleType) -> None:
    recording = transforms.record(40, 300, 30, seed=1)
    right = transforms.correlate_directly(recording.signals, recording.template)
    spectra = torch.fft.rfft(recording.signals) * torch.fft.rfft(recording.template, 300).conj()
    ring = torch.fft.irfft(spectra, 300)
    assert (right.argmax(1) == recording.places).all()
    assert not (ring.argmax(1) == recording.places).any()
    assert transforms.score_error(ring[:, :271], right[:, :271]) < 1e-5, "all but the last 29 are right"
    assert transforms.score_error(ring, right) > 0.1


def test_scores_of_another_shape_or_that_are_no_numbers_are_wrong(torch: ModuleType, transforms: ModuleType) -> None:
    right = torch.ones(2, 3, dtype=torch.float64)
    assert transforms.score_error(torch.ones(2, 3), right) == 0
    assert transforms.score_error(torch.ones(3), right) == math.inf
    assert transforms.score_error(torch.full((2, 3), math.nan), right) == math.inf


def test_an_operation_moves_its_operands_and_its_result(torch: ModuleType, traffic: ModuleType) -> None:
    u, v = torch.rand(10, 10), torch.rand(10, 10)
    for call, read, written in (
        (lambda: u + v, 800, 400),
        (lambda: u[1:-1, 1:-1] * 2, 256, 256),
        (lambda: u.add_(v, alpha=2), 800, 400),
        (lambda: torch.mul(u, 2, out=v), 400, 400),
        (lambda: u.copy_(v), 400, 400),
        (u.zero_, 0, 400),
        (lambda: u[2:].view(-1)[:5], 0, 0),
        (lambda: torch.empty(7), 0, 0),
        (lambda: u[0].expand(50, 10).sum(), 40, 4),
    ):
        with traffic.ByteCounter() as counter:
            call()
        assert (counter.read, counter.written) == (read, written)


def test_the_step_of_heat_moves_what_the_lesson_draws(torch: ModuleType, traffic: ModuleType, roof_kernels: ModuleType) -> None:
    u, out = torch.rand(34, 66), torch.rand(34, 66)
    with traffic.ByteCounter() as counter:
        roof_kernels.step_slowly(u, out, 0.1)
    points = 32 * 64
    assert (counter.total / points, counter.operations) == (104, 10)
    assert [limits.NUMBER * sum(operands + 1 for operands in step) for step in (limits.DELIVERED, limits.IN_PLACE)] == [104, 56]


def test_intensities_are_those_of_the_lesson(torch: ModuleType, roof_kernels: ModuleType) -> None:
    kernels = roof_kernels.make_kernels(roof_kernels.make_arrays(256, torch.device("cpu"), 0), 16, 32)
    counted = {kernel.kind: kernel.flop_per_byte for kernel in kernels}
    wanted = {
        "saxpy": 1 / 6,
        "layer norm": 1,
        "stencil": 0.75,
        "spmv": 1 / 7,
        "fft": 3.75,
        "forces": 5 * 1024 / 7,
        "gemm": 32 / 6,
    }
    assert counted == pytest.approx(wanted)
    assert [kernel.flop_per_byte for kernel in kernels][-2:] == pytest.approx([16 / 6, 32 / 6])
    assert {name: dict(limits.KERNELS)[name] for name in ("sparse", "FFT", "forces")} == pytest.approx(
        {"sparse": wanted["spmv"], "FFT": wanted["fft"], "forces": wanted["forces"]}
    )


def test_forces_are_those_of_pairs_one_by_one(torch: ModuleType, roof_kernels: ModuleType) -> None:
    places, masses = torch.rand(5, 3, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
    pull = torch.zeros(5, 3, dtype=torch.float64)
    for i in range(5):
        for j in range(5):
            d = places[j] - places[i]
            pull[i] += masses[j] * d / (d.square().sum() + roof_kernels.SOFTENING**2) ** 1.5
    assert torch.allclose(roof_kernels.find_forces(places, masses), pull)


@pytest.mark.parametrize(
    ("cache", "most", "side"),
    [(None, 64 << 20, 4096), (1 << 20, 64 << 20, 2048), (16 << 20, 64 << 20, 4096), (480 << 20, 64 << 20, 4096)],
)
def test_arrays_are_four_times_the_last_cache_within_bounds(
    roof_kernels: ModuleType, cache: int | None, most: int, side: int
) -> None:
    assert roof_kernels.choose_side(cache, most) == side
