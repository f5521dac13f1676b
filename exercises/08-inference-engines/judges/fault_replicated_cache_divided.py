"""Judge a repaired copy: the cache of a rank must be counted, and two ranks that hold the same head hold it twice."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("with {slices} slices, a rank is said to hold {share:.3g} of the cache; it holds one of two heads, a half")
}
RUNS = {
    word: {
        "slices": [{"slices": 1, "cache_share": 1.0}, {"slices": 2, "cache_share": 0.5}, {"slices": 4, "cache_share": share}]
    }
    for word, share in (("right", 0.5), ("wrong", 0.25))
}


def judge(part: Part) -> None:
    """Require half of the cache on every rank, with two or more slices."""
    for row in part.metrics["slices"]:
        if abs(row["cache_share"] - 1 / min(row["slices"], 2)) > 1e-9:
            raise part.wrong("still", slices=row["slices"], share=row["cache_share"])
    part.note("with two or more slices, a rank holds half of the cache")
