"""Your part of 9.7: Muon whose work and momentum are divided among the ranks, matrix by matrix.

You will learn    why an optimizer of whole matrices cannot use the shares of 6.2, and how whole matrices are balanced
You will produce  an optimizer that equals Muon on one process, with a share of the work on each rank
Try it            gpucourse try 9.7
Your part         the two methods of `ShardedMuon`; keep their names and parameters
Reading           modules/09-frontier-training/lesson-8-muon.md
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist  # noqa: F401  # for what you write


class ShardedMuon:
    """Muon over all ranks of the default process group. Every rank creates one, with the same parameters and settings."""

    def __init__(
        self,
        parameters: dict[str, torch.nn.Parameter],
        lr: float,
        momentum: float,
        weight_decay: float,
        orthogonalise: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        """Decide which rank has which matrix, and keep momentum only for this rank's.

        `parameters` are all weights by name, in the same order on all ranks. Muon changes the hidden matrices: those with two
        dimensions, except the ones whose names begin with "embedding" or "head". The others belong to an AdamW, so leave them
        and their gradients as they are.

        Work is divided by FLOPs: a matrix with sides m <= n costs 4 m^2 n + 2 m^3. No rank has more than 1.2 times the mean
        work, unless whole matrices cannot be divided so evenly.
        """
        raise NotImplementedError("ShardedMuon: how much work is each matrix, and which rank should get the next one?")

    def step(self) -> None:
        """Change the hidden matrices in place on all ranks, as Muon would with the mean of all ranks' gradients.

        Each `parameter.grad` is this rank's own. For a matrix W with the mean gradient g and the momentum M, which begins at 0:

            M = momentum M + (1 - momentum) g        direction = momentum M + (1 - momentum) g
            W = (1 - lr weight_decay) W - lr sqrt(max(1, rows / columns)) orthogonalise(direction)

        Call `orthogonalise` once for each matrix, on one rank only. In total, send as much as an all-reduce of these
        gradients: each gradient to the rank that needs it, then each new matrix to all ranks.
        """
        raise NotImplementedError("step: which rank needs the whole mean gradient of a matrix, and who needs its new weights?")
