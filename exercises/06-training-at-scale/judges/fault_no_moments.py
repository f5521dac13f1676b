"""Judges a repaired copy: the optimizer of a later life goes on where that of the earlier one was."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("the losses after the restart are off by up to {off}"),
    "no-crash": Way("the training had one life only: let it crash, so that it has to begin again"),
}
RUNS = {
    "right": {"lives": [{"life": 0}, {"life": 1}], "loss_off": 0.0},
    "wrong": {"lives": [{"life": 0}, {"life": 1}], "loss_off": 0.07},
}


def judge(part: Part) -> None:
    """All losses are those of the undisturbed training."""
    if len(part.metrics["lives"]) < 2:
        raise part.wrong("no-crash")
    if not part.metrics["loss_off"] <= 1e-6:
        raise part.wrong("still", off=part.metrics["loss_off"])
    part.note("the optimizer comes back with its moments")
