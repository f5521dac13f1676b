"""Your part of 6.3: where each rank is in a mesh, which ranks communicate, and how much they send from node to node.

You will learn    how an order of dimensions turns rank numbers into places; which ranks form a group; which order keeps the
                  many messages of tensor parallelism inside a node
You will produce  the mesh that the run trains on, its groups, and the bytes that will cross between nodes in a step
Try it            gpucourse try 6.3
Your part         ORDER, and the bodies of `coordinates`, `groups` and `cross_node_bytes`; keep their names and parameters
Reading           modules/06-training-at-scale/lesson-5-mesh.md
"""

from __future__ import annotations

ORDER = ("tp", "pp", "dp")
"""The dimensions, from the one that varies slowest as rank numbers grow to the one that varies fastest.

As delivered, dp varies fastest: ranks 0 and 1 hold the same slice of two copies. Decide whether that is a good order.
"""


def coordinates(rank: int, sizes: dict[str, int], order: tuple[str, ...]) -> dict[str, int]:
    """Return where a rank is: for each of "dp", "pp" and "tp" its coordinate, from 0 to the size of that dimension - 1.

    Ranks are numbered from 0. From one rank to the next, the coordinate of the last dimension of `order` goes up by 1. After
    its last value, it begins at 0 again, and the coordinate of the dimension before goes up by 1.
    """
    raise NotImplementedError("coordinates: what is left of a rank number once the fastest dimension is removed?")


def groups(dimension: str, sizes: dict[str, int], order: tuple[str, ...]) -> list[list[int]]:
    """Return the groups of ranks that communicate in this dimension: a list of groups, each a list of ranks.

    The ranks of a group differ only in their coordinate of `dimension`, and are in the order of that coordinate.
    Every rank is in exactly one group; the groups may be in any order.
    """
    raise NotImplementedError("groups: which coordinates do the ranks of a group have in common?")


def cross_node_bytes(sizes: dict[str, int], order: tuple[str, ...], ranks_per_node: int, message_bytes: dict) -> float:
    """Return the bytes that go from one node to another in a step, in all groups of all three dimensions together.

    Ranks 0 to `ranks_per_node` - 1 are on the first node, the same number on the second, and so on. How much a rank sends in a
    step depends on its stage, which is its coordinate of "pp":

    - `message_bytes["dp"][stage]`, `message_bytes["tp"][stage]`: the bytes that it passes to the all_reduces of its group,
      which are rings in the order of the group's ranks, as in 3.1;
    - `message_bytes["pp"]`: the bytes of the activations of a boundary between two stages, one way.
    """
    raise NotImplementedError("cross_node_bytes: for which ranks is the next rank of the group on another node?")
