"""Your part of 9.6: in which order a step of FSDP is issued.

You will learn    what "one layer ahead" means in forward and in backward, and when a layer may leave memory
You will produce  the order in which torch's FSDP2 issues a step, for any number of layers ahead
Try it            gpucourse try 9.6
Your part         the body of `order`; keep its name and its parameters
Reading           modules/09-frontier-training/lesson-7-overlap.md, "Gathering ahead"
"""

from __future__ import annotations


def order(layers: int, ahead_forward: int, ahead_backward: int, frees: bool) -> list[tuple[str, int]]:
    """Return the issues of one step, in the processor's order: ("gather", layer), ("forward", layer), ("free", layer),
    ("backward", layer) and ("reduce", layer).

    Layers are numbered from 0. Before it issues the computation of a layer, the processor has issued the gathers of that layer
    and of the next `ahead_forward` layers (in backward: `ahead_backward`) in the order in which they will be needed, each once.
    After its computation, a layer is freed immediately. In backward, its gradient is reduced after that.

    If `frees` is false, layers stay whole after forward, and are freed only in backward.
    """
    raise NotImplementedError("order: which layers are gathered before the first forward, and before the first backward?")
