"""The learner's environments of exercise 0.3, for every process of nodes with different numbers of processes.

You will learn    what a launcher needs from a function that describes a process
You will produce  nothing directly: launcher.py starts processes with these environments
Run it            python launcher.py
Your part         write my_environment.py
Reading           modules/00-local-foundations/lesson-2-ranks.md, "What a launcher does"
"""

from __future__ import annotations

UNEVEN = (1, 3, 2, 4)  # processes of the nodes 0, 1, 2, 3, and again from the first


def count_processes(nodes: int) -> list[int]:
    """Return the number of processes on each of `nodes` nodes."""
    return [UNEVEN[node % len(UNEVEN)] for node in range(nodes)]


def describe_all(_world: None, processes: list[int], address: str, port: int) -> list[dict[str, str]]:
    """Return what my_environment.py returns for each process, node by node. All nodes are on this computer, with one address.

    Raises TypeError if a value is not a string: environment variables are strings.
    """
    import my_environment  # the learner's file, which may raise or hang: `own_part` limits its time

    descriptions = []
    for node, count in enumerate(processes):
        for local_rank in range(count):
            variables = dict(my_environment.describe_process(node, local_rank, [address] * len(processes), processes, port))
            if strangers := [name for name, value in variables.items() if not isinstance(value, str)]:
                raise TypeError(f"{strangers[0]} of node {node}, local rank {local_rank} is not a string")
            descriptions.append(variables)
    return descriptions
