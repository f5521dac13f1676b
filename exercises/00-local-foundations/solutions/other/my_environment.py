"""The same variables, from a list of all processes in the order of their ranks."""

from __future__ import annotations

from collections.abc import Sequence


def describe_process(node: int, local_rank: int, hosts: Sequence[str], processes: Sequence[int], port: int) -> dict[str, str]:
    """Return the variables of one process."""
    everyone = [(place, index) for place, count in enumerate(processes) for index in range(count)]
    variables = {"MASTER_ADDR": hosts[everyone[0][0]], "MASTER_PORT": f"{port}", "WORLD_SIZE": f"{len(everyone)}"}
    variables |= {"RANK": f"{everyone.index((node, local_rank))}", "LOCAL_RANK": f"{local_rank}", "NODE_RANK": f"{node}"}
    return variables | {"LOCAL_WORLD_SIZE": f"{len([place for place, _ in everyone if place == node])}"}
