"""A solution of 5.8: it transforms all signals in one call and the template once, at a length with small prime factors."""

from __future__ import annotations

import torch


def matched_filter(signals: torch.Tensor, template: torch.Tensor) -> torch.Tensor:
    """Return how well the template fits at each place of each signal."""
    samples, points = signals.shape[1], template.shape[0]
    length = choose_length(samples + points - 1)
    template_spectrum = torch.fft.rfft(template, length).conj()
    spectra = torch.fft.rfft(signals, length)
    return torch.fft.irfft(spectra * template_spectrum, length)[:, :samples]


def choose_length(least: int) -> int:
    """Return the shortest length of at least `least` points that has no prime factors but 2, 3, 5 and 7."""
    length = least
    while True:
        quotient = length
        for factor in (2, 3, 5, 7):
            while quotient % factor == 0:
                quotient //= factor
        if quotient == 1:
            return length
        length += 1
