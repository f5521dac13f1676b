"""Judge a repaired copy: every parameter gets the mean of all ranks' gradients, including those that AdamW changes."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the weights of a rank are off by {off:.2g} from those of one process")}
RUNS = {"right": {"every_rank_off": 3e-8}, "wrong": {"every_rank_off": 0.08}}


def judge(part: Part) -> None:
    """Require the weights of one process, in float32."""
    if (off := part.metrics["every_rank_off"]) > 1e-6:
        raise part.wrong("still", off=off)
    part.note("all parameters equal those of one process")
