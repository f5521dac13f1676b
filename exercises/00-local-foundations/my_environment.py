"""Your part of 0.3: what a launcher tells each process, on nodes that have different numbers of GPUs.

You will learn    where the seven variables come from, and why RANK is more than a product
You will produce  a `describe_process` that is right for any nodes
Try it            gpucourse try 0.3
Your part         the body of `describe_process`; keep its name and its parameters
Reading           modules/00-local-foundations/lesson-2-ranks.md, "What a launcher does"
"""

from __future__ import annotations

from collections.abc import Sequence


def describe_process(node: int, local_rank: int, hosts: Sequence[str], processes: Sequence[int], port: int) -> dict[str, str]:
    """Return the variables of one process: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT.

    `hosts[k]` is the address of node k, and `processes[k]` the number of processes there, one for each GPU: nodes may have
    different numbers. `node` and `local_rank` identify the process, both counted from 0. All processes meet on node 0, at
    `port`.
    """
    raise NotImplementedError("describe_process: how many processes have a lower rank than the first one on this node?")
