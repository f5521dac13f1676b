"""Judge a repaired copy: the optimizer of a later life must continue where the earlier one stopped."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("the losses after the restart are off by up to {off}"),
    "no-crash": Way("the training had only one life: let it crash, so that it has to restart"),
}
RUNS = {
    "right": {"lives": [{"life": 0}, {"life": 1}], "loss_off": 0.0},
    "wrong": {"lives": [{"life": 0}, {"life": 1}], "loss_off": 0.07},
}


def judge(part: Part) -> None:
    """Require that all losses equal those of a run that never crashed."""
    if len(part.metrics["lives"]) < 2:
        raise part.wrong("no-crash")
    if not part.metrics["loss_off"] <= 1e-4:
        raise part.wrong("still", off=part.metrics["loss_off"])
    part.note("the optimizer is restored with its moments")
