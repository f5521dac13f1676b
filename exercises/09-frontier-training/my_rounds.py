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

    There are 2 log2(ranks) rounds. In the first, each rank exchanges half of the numbers with a partner, in the next a quarter
    with another partner, and so on, until each rank has the finished sum of its own chunk. Then the chunks go back the same
    way. Of n ranks, each sends 2(n-1)/n of the numbers in all. `numbers` need not be a multiple of `ranks`.

    Ranks 0 to g - 1 are on the first node, g to 2g - 1 on the second; g is a power of two that you do not know. Choose the
    order of the partners so that as few numbers as possible go from one node to another.

    Raise ValueError unless `ranks` is a power of two. One rank needs no rounds.
    """
    raise NotImplementedError("halving_doubling: of two partners, which numbers does each send, and which does it keep?")


def hierarchical(nodes: int, per_node: int, numbers: int) -> list[list[Message]]:
    """Return the rounds of an all-reduce in three phases, for any number of nodes and of ranks per node (both may be 1).

    First the ranks of each node share the work of summing: each gets the finished sum of its node for one chunk of `numbers`.
    Then the ranks with the same chunk on all nodes form a ring, and sum that chunk over the nodes, all chunks at the same time.
    Last, the ranks of each node exchange their finished chunks.

    Rank `node * per_node + i` is rank i of its node. A rank sends 2(n-1)/n of the numbers in all, for n = nodes * per_node.
    Between nodes, 2(nodes-1) times `numbers` go in all, and every rank of a node sends an equal share of them.
    """
    raise NotImplementedError("hierarchical: after the first phase, which chunk of its node does rank i have?")
