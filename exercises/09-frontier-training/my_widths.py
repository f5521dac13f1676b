"""Your part of 9.7: the first weights and the learning rates of a wider model, so that the best learning rate stays.

You will learn    what must shrink as a model becomes wider (muP, the maximal update parametrisation, for Adam)
You will produce  settings with which a learning rate that was found on a narrow model serves a wide one
Try it            gpucourse try 9.7
Your part         the body of `settings`; keep its name and parameters
Reading           modules/09-frontier-training/lesson-8-muon.md
"""

from __future__ import annotations

Shape = tuple[int, int]


def settings(kind: str, shape: Shape, base_shape: Shape) -> tuple[float, float, float]:
    """Return three numbers for a matrix W of `shape` (inputs, outputs), which the model uses as x @ (times W).

    1. the standard deviation of its first values; 2. the factor of its learning rate; 3. `times`.

    `base_shape` is the shape of the same matrix in the narrow model. If both shapes are equal, return the standard settings:
    the standard deviation 1 / sqrt(inputs), for an embedding 1, and no change of the rate or of the output. `kind` is:

    - "embedding": tokens or places to the width; each token uses one row
    - "hidden": width to width, or to and from a multiple of it
    - "head": width to scores
    """
    raise NotImplementedError("settings: how many numbers add up in one output of each kind, and how far does Adam move each?")
