"""Your part of 9.1: the time of four all-reduces by formula, and the choice between them.

You will learn    which of two costs decides: a latency in every round, or the bytes that a rank sends
You will produce  `seconds` and `choose`, which the run compares with the simulated times
Try it            gpucourse try 9.1
Your part         the bodies of both functions; keep their names and parameters
Reading           modules/09-frontier-training/lesson-2-collectives.md
"""

from __future__ import annotations

from collections.abc import Sequence


def seconds(algorithm: str, ranks: int, size_bytes: int, latency_s: float, bytes_per_s: float) -> float:
    """Return the time of an all-reduce of `size_bytes` on `ranks` ranks, each on its own node.

    A message of s bytes takes latency_s + s / bytes_per_s. A rank can send one message and receive one at the same time. A
    round ends when its largest message has arrived. `size_bytes` is a multiple of `ranks`.

    `algorithm` is one of
        "ring"      every rank of n passes a chunk to the next one, 2(n-1) times
        "doubling"  partners 1, 2, 4 ... ranks apart exchange the whole tensor
        "halving"   partners exchange a half, a quarter, an eighth ..., and then the finished chunks, back the same way
        "tree"      pairs, pairs of pairs ... send the whole tensor until rank 0 has the sum, which goes back the same way

    Raise ValueError for "doubling" and "halving" unless `ranks` is a power of two. A tree of 6 ranks has as many levels as one
    of 8. One rank takes no time.
    """
    raise NotImplementedError(
        "seconds: how many rounds does each algorithm need, and how many bytes are in the largest message of each?"
    )


def choose(algorithms: Sequence[str], ranks: int, size_bytes: int, latency_s: float, bytes_per_s: float) -> str:
    """Return the fastest of `algorithms` that is possible with `ranks` ranks. There is at least one."""
    raise NotImplementedError("choose: for which of these algorithms does seconds raise ValueError?")
