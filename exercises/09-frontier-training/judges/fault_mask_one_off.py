"""Judge a repaired copy: the output equals that of one process, so every token sees itself."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("the output differs from that of one process by {off:.2g} of its largest element: does a token see itself?")
}
RUNS = {"right": {"output_off": 1e-15, "causal": True}, "wrong": {"output_off": 0.8, "causal": True}}


def judge(part: Part) -> None:
    """Require the output of one process."""
    off = part.metrics["output_off"]
    if isinstance(off, str) or off > 1e-7:
        raise part.wrong("still", off=float(off))
    part.note("each token sees itself and all earlier ones")
