"""Your third part of 8.6: scales that change nothing in exact arithmetic, and a lot after rounding.

You will learn    why outliers of a few channels ruin a format, and how a scale for each input channel repairs it
You will produce  the scales of SmoothQuant and of AWQ
Try it            gpucourse try 8.6
Your part         the bodies of both functions; keep their names and parameters
Reading           modules/08-inference-engines/lesson-7-fewer-bits.md, "A scale that changes nothing"
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def smooth(activation: torch.Tensor, weight: torch.Tensor, alpha: float) -> torch.Tensor:
    """Return the scale of each input channel, [in], by SmoothQuant: activations are divided by it, and weights multiplied.

    `activation` [in] has the largest absolute activation of each channel, `weight` has the shape [out, in]. Let p be the
    product of a channel's largest absolute activation and its largest absolute weight. Divided by the scale, that activation is
    p to the power of 1 - `alpha`; multiplied by the scale, that weight is p to the power of `alpha`. Both maxima count as at
    least 1e-5.
    """
    raise NotImplementedError("smooth: which weights is an input channel multiplied by, and which scale gives these two?")


def search(weight: torch.Tensor, inputs: torch.Tensor, round_trip: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return the scale of each input channel, [in], as AWQ defines it: the caller uses round_trip(weight * scale) / scale.

    `round_trip` quantises a matrix [out, in] and returns the weights that its codes stand for. `inputs` [tokens, in] are
    activations from the calibration. The candidates are the means of the absolute inputs of each channel, to the power of 0,
    0.05, 0.1, ... 1. Return the one with which the layer's output for `inputs` changes least, by the mean square. A mean counts
    as at least 1e-5.
    """
    raise NotImplementedError("search: how do you measure what rounding changes, after dividing by the scale again?")
