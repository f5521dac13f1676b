"""Your part of 8.7: which rank holds which heads of the cache, and which rank sends which heads when a prompt's keys change
ranks.

You will learn    why a second doubling of the ranks may save no memory, and how ranks with copies of a head share the work
You will produce  the key-value heads of a rank, and the plan of a hand-over between two groups of ranks
Try it            gpucourse try 8.7
Your part         the bodies of `heads_of` and `pieces`; keep their names and parameters
Reading           modules/08-inference-engines/lesson-8-ranks.md
"""

from __future__ import annotations


def heads_of(rank: int, ranks: int, heads: int) -> list[int]:
    """Return the key-value heads (0 to `heads` - 1) whose cache rank `rank` of `ranks` holds, in ascending order.

    Each rank computes equally many neighbouring query heads, and neighbouring query heads share a key-value head. With at
    most as many ranks as heads, `ranks` divides `heads`, and each head is on one rank. With more ranks than heads, `heads`
    divides `ranks`, each rank holds one head, and neighbouring ranks hold copies of the same one.
    """
    raise NotImplementedError("heads_of: which key-value heads do the query heads of this rank read?")


def pieces(heads: int, senders: int, receivers: int) -> list[tuple[int, int, int, int]]:
    """Return the plan of a hand-over: (sender, slot of the sender, receiver, slot of the receiver) for each head that is sent.

    A prompt was computed on `senders` ranks, and its answer will be computed on `receivers` other ranks. In both groups,
    `heads_of` says which heads a rank holds. Slot i of a rank is the i-th head in its list. Each slot of each receiver is
    written exactly once. If several senders hold a head, they share the work: the sender with the most pieces sends as few as
    possible.
    """
    raise NotImplementedError("pieces: which senders hold the head that this slot of this receiver needs?")
