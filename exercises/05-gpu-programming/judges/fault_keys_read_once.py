"""Judge a repaired copy: what a kernel loads again and again must be counted each time."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "{n} keys: {given:,} bytes were counted, as if each key and value were loaded once. {blocks} blocks of queries load "
        "{right:,}"
    ),
    "not-counted": Way("this run counted no bytes, because its kernels ran on a GPU: run the copy on simulated nodes"),
}
SIZES = {"heads": 2, "d": 32, "block_q": 64}


def count_bytes(metrics: dict[str, Any], n: int, loads: int) -> int:
    """Return the bytes in float32 if q is read and the result written once, and k and v are read `loads` times."""
    return metrics["heads"] * (2 * n + 2 * loads * n) * metrics["d"] * 4


RUNS = {
    word: SIZES | {"single": [{"length": n, "counted_bytes": count_bytes(SIZES, n, n // 64 if word == "right" else 1)}
                              for n in (64, 512)]}
    for word in ("right", "wrong")
}  # fmt: skip


def judge(part: Part) -> None:
    """Compare the counted bytes of each length with those of all blocks of queries."""
    metrics = part.metrics
    for row in metrics["single"]:
        n, given = row["length"], row["counted_bytes"]
        if given is None:
            raise part.wrong("not-counted")
        blocks = -(-n // metrics["block_q"])
        right = count_bytes(metrics, n, blocks)
        if given != right:
            raise part.wrong("still", n=n, given=given, blocks=blocks, right=right)
    part.note("k and v are counted once for each block of queries")
