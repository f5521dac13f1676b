"""Your part of 0.3: what a launcher tells each process, on nodes that have different numbers of free GPUs.

You will learn    where the seven variables come from, and what they count when a node cannot use all of its GPUs
You will produce  a `describe_process` that is right for any nodes and any group size
Try it            gpucourse try 0.3
Your part         the body of `describe_process`; keep its name and its parameters
Reading           modules/00-local-foundations/lesson-2-ranks.md, "What a launcher does"
"""

from __future__ import annotations

from collections.abc import Sequence


def describe_process(
    node: int, local_rank: int, hosts: Sequence[str], free_gpus: Sequence[int], port: int, group_size: int
) -> dict[str, str] | None:
    """Return the variables of one process: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT.

    `hosts[k]` is the address of node k, and `free_gpus[k]` is the number of its free GPUs. It may differ from node to node, and
    may be 0. `node` and `local_rank` identify the process, and both count from 0: the launcher calls this once for each free
    GPU. Every process connects to rank 0, which listens at `port` of its own node.

    The model is split over groups of `group_size` processes: ranks 0 to group_size - 1 are the first group, and so on. A group
    must be on one node. There are as many groups as fit, at least one, and a node uses its first GPUs. Return None for a
    process that belongs to no group: it is not started.
    """
    raise NotImplementedError("describe_process: which processes are started, and how many of them have a lower rank?")
