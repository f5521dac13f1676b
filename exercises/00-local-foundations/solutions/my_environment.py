"""The environment of a process. Its rank counts all processes of earlier nodes, then the earlier processes on its own node."""

from __future__ import annotations

from collections.abc import Sequence


def describe_process(node: int, local_rank: int, hosts: Sequence[str], processes: Sequence[int], port: int) -> dict[str, str]:
    """Return the variables of one process."""
    preceding = sum(processes[:node])
    master = next(host for host, count in zip(hosts, processes, strict=True) if count)  # the node of rank 0
    values = {
        "RANK": preceding + local_rank,
        "WORLD_SIZE": sum(processes),
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": processes[node],
        "NODE_RANK": node,
        "MASTER_ADDR": master,
        "MASTER_PORT": port,
    }
    return {name: str(value) for name, value in values.items()}
