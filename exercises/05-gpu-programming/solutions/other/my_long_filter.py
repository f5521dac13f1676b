"""Another solution of 5.8 for long signals: pieces do not overlap, and their scores are added (overlap-add)."""

from __future__ import annotations

import math

import torch
from torch.nn import functional


def choose_points(points: int) -> int:
    """Return the power of two, up to 64 times the template, that has the fewest operations per score."""
    return min(
        (1 << power for power in range(points.bit_length(), (64 * points).bit_length())),
        key=lambda length: length * math.log2(length) / max(1e-9, length - points + 1),
    )


def filter_in_pieces(signals: torch.Tensor, template: torch.Tensor, length: int) -> torch.Tensor:
    """Return the sum of the scores of all pieces.

    A piece also adds to the scores before it, to which its first samples belong.
    """
    (rows, samples), points = signals.shape, len(template)
    step = length - points + 1
    count = -(-samples // step)
    pieces = functional.pad(signals, (0, count * step - samples)).view(rows, count, step)
    scores = torch.fft.irfft(torch.fft.rfft(pieces, length) * torch.fft.rfft(template, length).conj(), length)
    total = functional.pad(scores[..., :step].reshape(rows, -1), (points - 1, 0))
    for lag in range(points - 1):  # score -1 of a piece is at the end of its ring
        total[:, points - 2 - lag :: step][:, :count] += scores[..., length - 1 - lag]
    return total[:, points - 1 : points - 1 + samples]
