"""Judge a repaired copy: pairs are dropped in the order in which they come, so dropped pairs weigh as much as others."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("the dropped share of weight differs from that of pairs by {gap:.1f} points: the heaviest pairs are dropped")
}
RUNS = {"right": {"weight_gap": 0.4}, "wrong": {"weight_gap": 7.9}}


def judge(part: Part) -> None:
    """Require that dropped pairs weigh no more than others, within 5 points."""
    if part.metrics["weight_gap"] > 5:
        raise part.wrong("still", gap=part.metrics["weight_gap"])
    part.note("dropped pairs weigh as much as others")
