"""Your part of 5.8: a matched filter that finds a known pulse in many signals, right and fast.

You will learn    which lengths suit an FFT, why padding is no waste, and what a batch saves
You will produce  a `matched_filter` with the same scores that is at least twice as fast, and up to a hundred times
Try it            gpucourse try 5.8 (counts transforms); gpucourse run 5.8 also measures the time
Your part         `matched_filter` below: it is right, but slow; keep its name and its parameters
Reading           modules/05-gpu-programming/lesson-10-transforms.md
"""

from __future__ import annotations

import torch


def matched_filter(signals: torch.Tensor, template: torch.Tensor) -> torch.Tensor:
    """Return how well the template fits at each place of each signal.

    `signals` has the shape (signals, samples) and `template` the shape (points,), with no more points than samples. Both are
    float32 and on the same device.
    The scores have the shape (signals, samples). Score k of a signal is the sum over j of template[j] * signal[k + j].
    Everything beyond the end of the signal counts as 0.
    """
    samples, points = signals.shape[1], template.shape[0]
    length = samples + points - 1  # Would length = samples do? It is shorter, and 1000 = 2 * 2 * 2 * 5 * 5 * 5 suits an FFT.
    scores = []
    for signal in signals:
        spectrum = torch.fft.rfft(signal, length)
        template_spectrum = torch.fft.rfft(template, length).conj()
        scores.append(torch.fft.irfft(spectrum * template_spectrum, length)[:samples])
    return torch.stack(scores)
