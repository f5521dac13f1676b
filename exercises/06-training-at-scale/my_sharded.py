"""Your part of 6.2: an AdamW whose work and state are divided among the ranks, and whose weights equal AdamW's.

You will learn    how a reduce-scatter and an all-gather replace an all-reduce; what a rank need not keep
You will produce  an optimizer as in ZeRO 1: each rank updates its own share, and gets the other shares from the other ranks
Try it            gpucourse try 6.2
Your part         the two methods of `ShardedAdamW`; keep their names and parameters
Reading           modules/06-training-at-scale/lesson-3-zero.md, "An optimizer in shares"
"""

from __future__ import annotations

import torch
import torch.distributed as dist  # noqa: F401  # for what you write


class ShardedAdamW:
    """AdamW over all ranks of the default process group. Every rank creates one, with the same parameters and settings.

    Between two steps, a rank's optimizer keeps at most four numbers for each parameter in its own share. A share is 1/n of all
    parameters, rounded up. Whole tensors exist only inside `step`.
    """

    def __init__(
        self,
        parameters: list[torch.nn.Parameter],
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
    ) -> None:
        """`parameters` are all weights of the model, the same on all ranks; their sizes need not be multiples of the number of
        ranks.

        The other four have the same meaning as in torch.optim.AdamW.
        """
        raise NotImplementedError("ShardedAdamW: which numbers does this rank update, and what must it keep for them?")

    def step(self) -> None:
        """Change all parameters in place, as AdamW would with the mean of all ranks' gradients.

        Each `parameter.grad` is this rank's own: it is not averaged yet. In total, a rank sends as much as for an all-reduce of
        the gradients: a reduce-scatter of the gradients, then an all-gather of the new weights. The two functions
        `dist.reduce_scatter_tensor(mine, whole)` and `dist.all_gather_into_tensor(whole, mine)` take flat tensors.
        """
        raise NotImplementedError("step: whose gradients are needed for this rank's share, and who needs its new weights?")
