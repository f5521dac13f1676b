"""A solution of 5.8 for long signals: pieces overlap by the template's points less one, and one call transforms them all."""

from __future__ import annotations

import math

import torch


def choose_points(points: int) -> int:
    """Return the length with small prime factors that has the fewest operations per score."""
    candidates = (length for length in range(points + 1, 40 * points) if has_small_factors(length))
    return min(candidates, key=lambda length: length * math.log2(length) / (length - points + 1))


def has_small_factors(length: int) -> bool:
    """Return whether no prime factor is larger than 7."""
    for factor in (2, 3, 5, 7):
        while length % factor == 0:
            length //= factor
    return length == 1


def filter_in_pieces(signals: torch.Tensor, template: torch.Tensor, length: int) -> torch.Tensor:
    """Return the scores from transforms of `length` points each."""
    samples = signals.shape[1]
    step = length - template.shape[0] + 1  # the scores of a piece that do not wrap around
    count = -(-samples // step)
    padded = torch.nn.functional.pad(signals, (0, (count - 1) * step + length - samples))
    pieces = padded.unfold(1, length, step)
    template_spectrum = torch.fft.rfft(template, length).conj()
    scores = torch.fft.irfft(torch.fft.rfft(pieces) * template_spectrum, length)
    return scores[..., :step].reshape(len(signals), -1)[:, :samples]
