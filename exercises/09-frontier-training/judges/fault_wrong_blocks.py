"""Judge a repaired copy: a product must equal the sum of products of codes, multiplied by their scales afterwards."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "a product differs by {off:.1%} of its largest number from what a GPU computes from codes and scales: along which "
        "dimension do its operands share scales?"
    )
}
RUNS = {"right": {"product_off": 1e-6}, "wrong": {"product_off": 0.03}}


def judge(part: Part) -> None:
    """Require products that differ by rounding in float32 only."""
    off = part.metrics["product_off"]
    if off > 1e-5:
        raise part.wrong("still", off=off)
    part.note("each product's operands share scales along the dimension that it sums over")
