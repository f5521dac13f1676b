"""Plans of 6.2: how they divide a training run among the ranks of several nodes, a step of them, and what is counted of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Counts(NamedTuple):
    """Bytes of one rank, on average over all ranks: in its GPU's memory, and moved in one step."""

    held: float
    """Weights, gradients and optimizer state in the GPU's memory, between the last two micro-batches (or before the optimizer's
    step, if there is only one). Blocks that are whole for a moment do not count, and neither do activations."""
    inside: float
    """Sent over links inside the nodes."""
    across: float
    """Sent over links between nodes."""
    offloaded: float
    """Moved between the GPU and its node's memory, in both directions together."""


@dataclass(frozen=True)
class Plan:
    """A division of a training run among ranks, and what happens in a step.

    `weight`, `gradient` and `state` are the bytes in memory for each parameter, `weight_wire` and `gradient_wire` those on
    links between ranks.

    `weights`, `gradients` and `optimizer` say among which ranks each kind is divided evenly: "whole" (not at all), "node" (the
    ranks of a node, so that each node has all of it) or "all". The optimizer is divided at least as far as the gradients, and
    the gradients at least as far as the weights.

    A step has these parts:

    1. For each micro-batch, each block computes forward, later backward. For both it needs its whole weights. If `weights` are
       divided and `frees` is true, they are gathered for each of the two and freed after it. If `frees` is false, whole weights
       are gathered once, and stay in addition to the shares until the optimizer's step.
    2. After each micro-batch, a rank adds the new gradients to those that it keeps. If `gradients` are divided, they are first
       summed over the ranks of that division, and the rank keeps only its share.
    3. Before the optimizer's step, a rank needs the sum over all ranks, of the numbers whose optimizer state it has. What is
       still missing is summed now.
    4. The optimizer updates these numbers. If it `offloads`, its state is in the node's memory and the CPU updates there: a
       rank's gradients go to the node's memory, and its new weights come back, both as they are stored.
    5. If other ranks updated the weights of a rank, it receives them.

    All collectives use rings. A ring of all ranks passes through each node in turn. If the ranks of a node have already
    divided something, only ranks with the same place in their nodes still have to exchange it, in rings across nodes.
    """

    parameters: int
    nodes: int
    per_node: int
    weights: str = "whole"
    gradients: str = "whole"
    optimizer: str = "whole"
    micro_batches: int = 1
    frees: bool = True
    weight: float = 4
    gradient: float = 4
    state: float = 8
    weight_wire: float = 4
    gradient_wire: float = 4
    offloads: bool = False


STAGES = (
    {}, {"optimizer": "all"}, {"optimizer": "all", "gradients": "all"},
    {"optimizer": "all", "gradients": "all", "weights": "all"},
)  # fmt: skip
"""The parts that each stage of ZeRO divides among all ranks, as in the paper."""

DIVIDED = STAGES[3]
MEASURED = {
    "stage 3, 4 parts": DIVIDED | {"micro_batches": 4},
    "weights kept, 4 parts": DIVIDED | {"micro_batches": 4, "frees": False},
    "gradients whole, 4 parts": {"weights": "all", "gradients": "whole", "optimizer": "all", "micro_batches": 4},
    "copy in each node, 2 parts": {"weights": "node", "gradients": "node", "optimizer": "node", "micro_batches": 2},
    "16-bit gathers, 2 parts": DIVIDED | {"micro_batches": 2, "weight_wire": 2},
}
"""Plans that the run trains with torch, and counts."""
