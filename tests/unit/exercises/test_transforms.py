"""Fourier transforms: fast lengths, counts, and signals in which a ring finds nothing."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit.exercises.scripts import beside_the_script


@pytest.fixture(scope="module")
def transforms(torch: ModuleType) -> ModuleType:
    return beside_the_script("05-gpu-programming", "transforms")


@pytest.mark.parametrize(("length", "factor"), [(1, 1), (2, 2), (1123, 1123), (1124, 281), (1125, 5), (4096, 2), (10_403, 103)])
def test_largest_prime_factor_of_lengths(transforms: ModuleType, length: int, factor: int) -> None:
    assert transforms.largest_prime_factor(length) == factor


@pytest.mark.parametrize(("minimum", "length"), [(1, 1), (11, 12), (1123, 1125), (4219, 4320), (2**20 + 1, 1_049_760)])
def test_find_fast_length_takes_the_shortest(transforms: ModuleType, minimum: int, length: int) -> None:
    assert transforms.find_fast_length(minimum) == length
    assert all(transforms.largest_prime_factor(shorter) > 7 for shorter in range(minimum, length))


def test_transform_counter_counts_rows_calls_and_lengths(torch: ModuleType, transforms: ModuleType) -> None:
    signals = torch.randn(6, 50)
    with transforms.TransformCounter() as counter:
        spectra = torch.fft.rfft(signals, 60)
        torch.fft.irfft(spectra * torch.fft.rfft(signals[0, :7], 60).conj(), 60)
        torch.fft.ifft(torch.fft.fft(signals, 64))
    assert (counter.forward_calls, counter.forward_rows) == (3, 6 + 1 + 6)
    assert (counter.inverse_calls, counter.inverse_rows) == (2, 6 + 6)
    assert (counter.lengths, counter.template_transforms) == ({60, 64}, 1)


def test_correlate_directly_finds_pulses_that_a_ring_does_not(torch: ModuleType, transforms: ModuleType) -> None:
    recording = transforms.record(40, 300, 30, seed=1)
    correlation = transforms.correlate_directly(recording.signals, recording.template)
    spectra = torch.fft.rfft(recording.signals) * torch.fft.rfft(recording.template, 300).conj()
    ring = torch.fft.irfft(spectra, 300)
    assert (correlation.argmax(1) == recording.places).all()
    assert not (ring.argmax(1) == recording.places).any()
    assert transforms.score_error(ring[:, :271], correlation[:, :271]) < 1e-5, "all but the last 29 are right"
    assert transforms.score_error(ring, correlation) > 0.1


@pytest.mark.parametrize(("length", "points", "operations"), [(256, 124, 76.99), (1024, 124, 56.83), (262144, 124, 90.04)])
def test_operations_per_score_counts_two_transforms_and_the_scores_that_do_not_wrap(
    transforms: ModuleType, length: int, points: int, operations: float
) -> None:
    assert transforms.operations_per_score(length, points) == pytest.approx(operations, abs=0.01)


def test_fewest_operations_is_reached_within_a_tenth_by_a_power_of_two(transforms: ModuleType) -> None:
    for points in (8, 20, 124, 1000):
        powers = [1 << power for power in range(points.bit_length(), 20)]
        best = min(transforms.operations_per_score(length, points) for length in powers)
        assert 1 <= best / transforms.fewest_operations(points) <= 1.1
