"""Module 5's limits: lengths of transforms, what is counted of them, and signals in which a ring finds nothing."""

from __future__ import annotations

import math

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

torch = pytest.importorskip("torch")
transforms = beside_the_script("05-gpu-programming", "transforms")
pytestmark = needs_module("torch")


@pytest.mark.parametrize(("length", "factor"), [(1, 1), (2, 2), (1123, 1123), (1124, 281), (1125, 5), (4096, 2), (10_403, 103)])
def test_the_largest_prime_factor(length: int, factor: int) -> None:
    assert transforms.largest_prime_factor(length) == factor


def test_a_length_of_no_points_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one point"):
        transforms.largest_prime_factor(0)


@pytest.mark.parametrize(("least", "length"), [(1, 1), (11, 12), (1123, 1125), (4219, 4320), (2**20 + 1, 1_049_760)])
def test_the_shortest_fast_length(least: int, length: int) -> None:
    assert transforms.find_fast_length(least) == length
    assert all(transforms.largest_prime_factor(shorter) > 7 for shorter in range(least, length))


def test_a_real_transform_counts_half_of_a_complex_one() -> None:
    assert transforms.real_transform_flops(1024) == 2.5 * 1024 * 10
    assert transforms.real_transform_flops(1) == 0


def test_transforms_are_counted_by_rows_calls_and_lengths() -> None:
    signals = torch.randn(6, 50)
    with transforms.TransformCounter() as counter:
        spectra = torch.fft.rfft(signals, 60)
        torch.fft.irfft(spectra * torch.fft.rfft(signals[0, :7], 60).conj(), 60)
        torch.fft.ifft(torch.fft.fft(signals, 64))
    assert (counter.forward_calls, counter.forward_rows) == (3, 6 + 1 + 6)
    assert (counter.inverse_calls, counter.inverse_rows) == (2, 6 + 6)
    assert (counter.lengths, counter.template_transforms) == ({60, 64}, 1)


def test_a_ring_finds_no_pulse_and_the_direct_sum_all() -> None:
    recording = transforms.record(40, 300, 30, seed=1)
    right = transforms.correlate_directly(recording.signals, recording.template)
    spectra = torch.fft.rfft(recording.signals) * torch.fft.rfft(recording.template, 300).conj()
    ring = torch.fft.irfft(spectra, 300)
    assert (right.argmax(1) == recording.places).all()
    assert not (ring.argmax(1) == recording.places).any()
    assert transforms.score_error(ring[:, :271], right[:, :271]) < 1e-5, "all but the last 29 are right"
    assert transforms.score_error(ring, right) > 0.1


def test_scores_of_another_shape_or_that_are_no_numbers_are_wrong() -> None:
    right = torch.ones(2, 3, dtype=torch.float64)
    assert transforms.score_error(torch.ones(2, 3), right) == 0
    assert transforms.score_error(torch.ones(3), right) == math.inf
    assert transforms.score_error(torch.full((2, 3), math.nan), right) == math.inf
