"""Judge a repaired copy: a repeated step must see the same batch again."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("the losses of repeated steps differ by up to {off}"),
    "no-crash": Way("no step was repeated: let it crash some steps after a save, as it does by default"),
}
RUNS = {
    "right": {"repeated_steps": 3, "repeat_off": 0.0, "loss_off": 0.0},
    "wrong": {"repeated_steps": 3, "repeat_off": 0.31, "loss_off": 0.42},
}


def judge(part: Part) -> None:
    """Require that repeated steps have equal losses, and that all losses equal those of a run that never crashed."""
    metrics = part.metrics
    if not metrics["repeated_steps"]:
        raise part.wrong("no-crash")
    off = max(metrics["repeat_off"], metrics["loss_off"])
    if not off <= 1e-4:
        raise part.wrong("still", off=off)
    part.note("each step has the batch of its number, in every life")
