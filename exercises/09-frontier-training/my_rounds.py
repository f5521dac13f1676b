"""Your part of 9.1: two all-reduces as rounds of messages, one that halves and one that knows the nodes.

You will learn    why few rounds and few bytes are different aims, and why the order of partners decides what crosses nodes
You will produce  `halving_doubling` and `hierarchical`, which the run executes on real ranks and on virtual GPUs
Try it            gpucourse try 9.1
Your part         the bodies of both functions; keep their names and parameters
Reading           modules/09-frontier-training/lesson-2-collectives.md

A message is `Message(source, target, first, last, add)`: rank `source` sends its numbers from `first` up to, but not including,
`last` to rank `target`, which adds them to its own (`add=True`) or replaces its own with them. All messages of a round are sent
at the same time, with the values from before the round. In a round, a rank sends at most one message and receives at most one.
"""

from __future__ import annotations

from rounds import Message


def halving_doubling(ranks: int, numbers: int) -> list[list[Message]]:
    """Return the rounds of an all-reduce: afterwards every rank has the sums of all `numbers` numbers.

    There are at most 2 log2(ranks) rounds, and of n ranks each sends at most 2(n-1)/n of the numbers in all, in chunks whose
    lengths may differ by one. `numbers` need not be a multiple of `ranks`.

    Ranks 0 to g - 1 are on the first node, g to 2g - 1 on the second; g is a power of two that you do not know. Choose the
    order of the partners so that as few numbers as possible go from one node to another.

    Raise ValueError unless `ranks` is a power of two. One rank needs no rounds.
    """
    raise NotImplementedError("halving_doubling: of two partners, which numbers does each send, and which does it keep?")


def hierarchical(nodes: int, per_node: int, numbers: int) -> list[list[Message]]:
    """Return the rounds of an all-reduce in three phases, for any number of nodes and of ranks per node (both may be 1).

    The first phase stays inside the nodes, the second goes between ranks that have the same place in their nodes, for all
    chunks at the same time, and the third stays inside again. There are at most 2(nodes - 1) + 2(per_node - 1) rounds.

    Rank `node * per_node + i` is rank i of its node. A rank sends 2(n-1)/n of the numbers in all, for n = nodes * per_node.
    Between nodes, 2(nodes-1) times `numbers` go in all, and every rank of a node sends an equal share of them.
    """
    raise NotImplementedError("hierarchical: after the first phase, which chunk of its node does rank i have?")
