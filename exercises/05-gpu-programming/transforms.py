"""Help 5.8 and its judge: lengths that suit an FFT, a count of a call's transforms, and signals with a known pulse.

Needs only torch, and is uploaded with the script.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

MAX_FACTOR = 7  # of a length for which FFT libraries have special code: MKL, cuFFT and pocketfft have it for 2, 3, 5 and 7
PEAK_OVER_NOISE = 20.0  # the score of a pulse over the standard deviation of the scores of noise
LEFTOVER = 1.4  # amplitude of the two halves of a pulse at the ends of a signal, over that of the pulse inside


def largest_prime_factor(length: int) -> int:
    """Return the largest prime that divides `length`, or 1 for 1. Raises ValueError below 1."""
    if length < 1:
        raise ValueError(f"a transform has at least one point, not {length}")
    largest, factor = 1, 2
    while factor * factor <= length:
        while length % factor == 0:
            largest, length = factor, length // factor
        factor += 1
    return max(largest, length)


def find_fast_length(minimum: int) -> int:
    """Return the shortest length of at least `minimum` points that has no prime factors but 2, 3, 5 and 7."""
    return next(length for length in range(minimum, 2 * minimum + 1) if largest_prime_factor(length) <= MAX_FACTOR)


def real_transform_flops(length: int) -> float:
    """Return the operations that count for an FFT of `length` real numbers: 2.5 N log2 N, half of a complex FFT's 5 N log2 N.

    This is the convention of FFTW's benchmark (fftw.org/speed/method.html), however an implementation works.
    """
    return 2.5 * length * math.log2(length) if length > 1 else 0.0


def operations_per_score(length: int, points: int) -> float:
    """Return the operations of two transforms of `length` points, divided by the scores of a piece that do not wrap around."""
    return 2 * real_transform_flops(length) / (length - points + 1)


@functools.cache
def fewest_operations(points: int) -> float:
    """Return the fewest operations per score that pieces of any length need for a template of `points` points."""
    return min(operations_per_score(length, points) for length in range(points, 64 * points))


class TransformCounter(TorchDispatchMode):
    """Count the FFTs inside a `with`: calls, rows (single transforms) and lengths, forward and inverse."""

    def __init__(self) -> None:
        super().__init__()
        self.forward_calls = self.forward_rows = self.inverse_calls = self.inverse_rows = 0
        self.lengths: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle every operation of torch."""
        name = function.overloadpacket.__name__
        result = function(*args, **(kwargs or {}))
        if name in {"_fft_r2c", "_fft_c2r", "_fft_c2c"}:
            whole = result if name == "_fft_c2r" else args[0]  # the complex side of a real transform has half the points
            self._count(whole, args[1], forward=name == "_fft_r2c" or (name == "_fft_c2c" and args[3]))
        return result

    def _count(self, whole: torch.Tensor, dims: list[int], *, forward: bool) -> None:
        length = math.prod(whole.shape[dim] for dim in dims)
        rows = whole.numel() // max(1, length)
        self.lengths.add(length)
        if forward:
            self.forward_calls, self.forward_rows = self.forward_calls + 1, self.forward_rows + rows
        else:
            self.inverse_calls, self.inverse_rows = self.inverse_calls + 1, self.inverse_rows + rows

    @property
    def template_transforms(self) -> int:
        """Return the number of the template's transforms: the forward transforms without an inverse."""
        return self.forward_rows - self.inverse_rows


@dataclass(frozen=True)
class Recording:
    """Signals of shape (signals, samples), each with one pulse of shape (points,), and where each pulse
    begins."""

    signals: torch.Tensor
    template: torch.Tensor
    places: torch.Tensor


def record(count: int, samples: int, points: int, seed: int) -> Recording:
    """Return noise of standard deviation 1 with one pulse per signal: a tone that rises from 0 to 0.4 cycles per sample.

    If there is room, a signal also has the last half of a louder pulse at its beginning, and the first half of one at its end.
    Neither is a whole pulse, but they would become one if the signal's ends were joined to a ring.
    """
    random = torch.Generator().manual_seed(seed)
    time = torch.arange(points, dtype=torch.float32)
    template = torch.cos(2 * math.pi * 0.2 * time.square() / points + 0.3)
    amplitude = PEAK_OVER_NOISE / template.norm()
    signals = torch.randn(count, samples, generator=random)
    places = torch.randint(0, samples - points + 1, (count,), generator=random)
    signals.scatter_add_(1, places[:, None] + torch.arange(points), (amplitude * template).expand(count, points))
    if samples >= 4 * points:
        half = points // 2
        signals[:, : points - half] += LEFTOVER * amplitude * template[half:]
        signals[:, samples - half :] += LEFTOVER * amplitude * template[:half]
    return Recording(signals, template, places)


def correlate_directly(signals: torch.Tensor, template: torch.Tensor) -> torch.Tensor:
    """Return the scores by their definition, in double precision and of shape (signals, samples).

    Score k is the sum of template[j] * signal[k + j]. Everything beyond the end of a signal counts as 0.
    """
    padded = torch.nn.functional.pad(signals.double(), (0, len(template) - 1))
    return torch.nn.functional.conv1d(padded[:, None], template.double()[None, None])[:, 0]


def score_error(scores: torch.Tensor, right: torch.Tensor) -> float:
    """Return the largest error of any score, including the last ones, divided by the largest right score.

    Return infinity if the shapes differ.
    """
    if scores.shape != right.shape:
        return math.inf
    difference = (scores.double() - right).abs()
    return (difference.max() / right.abs().max()).item() if difference.isfinite().all() else math.inf
