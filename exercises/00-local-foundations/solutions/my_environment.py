"""A solution of 0.3: the rank of a process is the number of started processes on earlier nodes, plus its local rank."""

from __future__ import annotations

from collections.abc import Sequence


def describe_process(
    node: int, local_rank: int, hosts: Sequence[str], free_gpus: Sequence[int], port: int, group_size: int
) -> dict[str, str] | None:
    """Return the variables of one process, or None if it is not started."""
    started = [count - count % group_size for count in free_gpus]  # the rest of a node is too small for a group
    if local_rank >= started[node]:
        return None
    preceding = sum(started[:node])
    master = next(host for host, count in zip(hosts, started, strict=True) if count)  # the node of rank 0
    values = {
        "RANK": preceding + local_rank,
        "WORLD_SIZE": sum(started),
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": started[node],
        "NODE_RANK": node,
        "MASTER_ADDR": master,
        "MASTER_PORT": port,
    }
    return {name: str(value) for name, value in values.items()}
