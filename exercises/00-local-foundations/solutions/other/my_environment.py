"""Another solution of 0.3: it finds the variables in a list of all groups, in the order of their ranks."""

from __future__ import annotations

from collections.abc import Sequence


def describe_process(
    node: int, local_rank: int, hosts: Sequence[str], free_gpus: Sequence[int], port: int, group_size: int
) -> dict[str, str] | None:
    """Return the variables of one process, or None if it is not started."""
    groups = [(place, number) for place, count in enumerate(free_gpus) for number in range(count // group_size)]
    everyone = [(place, number * group_size + index) for place, number in groups for index in range(group_size)]
    if (node, local_rank) not in everyone:
        return None
    variables = {"MASTER_ADDR": hosts[everyone[0][0]], "MASTER_PORT": f"{port}", "WORLD_SIZE": f"{len(everyone)}"}
    variables |= {"RANK": f"{everyone.index((node, local_rank))}", "LOCAL_RANK": f"{local_rank}", "NODE_RANK": f"{node}"}
    return variables | {"LOCAL_WORLD_SIZE": f"{len([place for place, _ in everyone if place == node])}"}
