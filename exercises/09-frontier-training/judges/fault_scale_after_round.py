"""Judge a repaired copy: with each tensor's own scale, the model learns as in float32."""

from __future__ import annotations

from gpucourse.judge import Part, Verdict, Way

WAYS = {"still": Way("the loss of e4m3-tensor is {off:.1f} % above that of float32: whose scale does a tensor get?")}
RUNS = {
    "right": {"tensor_gap_percent": 0.05},
    "wrong": {"tensor_gap_percent": 40.0},
}


def judge(part: Part) -> None:
    """Require a loss at most two percent above float32's."""
    off = part.metrics["tensor_gap_percent"]
    if off is None:
        raise Verdict("failed", "other", "the recipe e4m3-tensor was not trained: it belongs to --recipes")
    if off > 2:
        raise part.wrong("still", off=off)
    part.note("each tensor is rounded with its own scale")
