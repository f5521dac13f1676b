"""Judges a repaired copy: keys and values are read again for every block of queries."""

from __future__ import annotations

from types import SimpleNamespace

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "{n} queries in {blocks} blocks: the formula counts {given:,} bytes, but with the keys and values of every block there "
        "are {right:,}"
    )
}


def judge(part: Part) -> None:
    """Count the bytes of whole blocks: q and the result once, k and v once for each block of queries."""
    args = SimpleNamespace(heads=2, d=32, block_q=64, block_k=64)
    predict = part.function_alone("predict_tiles", args=args)
    for n in (64, 256, 512):
        blocks = n // args.block_q
        for causal in (False, True):
            pairs = blocks * (blocks + 1) // 2 if causal else blocks * blocks
            right = args.heads * (2 * n + 2 * pairs * args.block_k) * args.d * 4
            given = part.call(predict, n, 4, causal)
            if given != right:
                raise part.wrong("still", n=n, blocks=blocks, given=given, right=right)
    part.note("k and v are counted once for each block of queries that sees them")
