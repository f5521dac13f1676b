"""The learner's environments of exercise 0.3, for every process of nodes with different numbers of free GPUs.

You will learn    what a launcher needs from a function that describes a process
You will produce  nothing directly: launcher.py starts processes with these environments
Run it            python launcher.py
Your part         write my_environment.py
Reading           modules/00-local-foundations/lesson-2-ranks.md, "What a launcher does"
"""

from __future__ import annotations

import inspect

GROUP_SIZE = 2  # processes that have to be on one node
UNEVEN = ((3, 2), (5, 4), (1, 0), (4, 4))  # nodes 0 to 3, and again from the first: free GPUs, and processes in whole groups


def count_free_gpus(nodes: int) -> list[int]:
    """Return the number of free GPUs on each of `nodes` nodes."""
    return [UNEVEN[node % len(UNEVEN)][0] for node in range(nodes)]


def list_places(nodes: int) -> list[tuple[int, int]]:
    """Return the node and the local rank of each process that has to be started, in the order of the ranks."""
    return [(node, index) for node in range(nodes) for index in range(UNEVEN[node % len(UNEVEN)][1])]


def describe_all(_world: None, free_gpus: list[int], address: str, port: int) -> list[tuple[int, int, dict[str, str]]]:
    """Return node, local rank and variables of each process that my_environment.py starts. All nodes are on this computer,
    with one address.

    Raises TypeError if the function does not accept the arguments, or if a value is not a string: environment variables are
    strings.
    """
    import my_environment  # the learner's file, which may raise or hang: `own_part` limits its time

    describe = my_environment.describe_process
    if len(inspect.signature(describe).parameters) == 5:
        raise TypeError("describe_process has no parameter group_size, which is new: gpucourse try 0.3 says what it is")
    descriptions = []
    for node, count in enumerate(free_gpus):
        for local_rank in range(count):
            variables = describe(node, local_rank, [address] * len(free_gpus), free_gpus, port, GROUP_SIZE)
            if variables is None:
                continue
            if strangers := [name for name, value in variables.items() if not isinstance(value, str)]:
                raise TypeError(f"{strangers[0]} of node {node}, local rank {local_rank} is not a string")
            descriptions.append((node, local_rank, dict(variables)))
    return descriptions
