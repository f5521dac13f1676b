"""The environment of a process. Its rank counts all processes of earlier nodes, then the earlier processes on its own node."""

from __future__ import annotations

from collections.abc import Sequence


def describe_process(node: int, local_rank: int, hosts: Sequence[str], processes: Sequence[int], port: int) -> dict[str, str]:
    """Return the variables of one process."""
    preceding = sum(processes[:node])
    values = {
        "RANK": preceding + local_rank,
        "WORLD_SIZE": sum(processes),
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": processes[node],
        "NODE_RANK": node,
        "MASTER_ADDR": hosts[0],
        "MASTER_PORT": port,
    }
    return {name: str(value) for name, value in values.items()}
