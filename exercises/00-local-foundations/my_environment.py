"""Your part of 0.3: what a launcher tells each process, on nodes that have different numbers of GPUs.

You will learn    where the seven variables come from, and why one product is not enough for RANK
You will produce  a `describe_process` that is right for any nodes
Try it            gpucourse try 0.3
Your part         the body of `describe_process`; keep its name and its parameters
Reading           modules/00-local-foundations/lesson-2-ranks.md, "What a launcher does"
"""

from __future__ import annotations

from collections.abc import Sequence


def describe_process(node: int, local_rank: int, hosts: Sequence[str], processes: Sequence[int], port: int) -> dict[str, str]:
    """Return the variables of one process: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT.

    `hosts[k]` is the address of node k. `processes[k]` is the number of processes on node k, one for each free GPU; it may
    differ from node to node, and a node whose GPUs are all in use has 0. `node` and `local_rank` identify the process, and both
    count from 0. Every process connects to rank 0, which listens at `port` of its own node.
    """
    raise NotImplementedError("describe_process: how many processes have a lower rank than the first one on this node?")
