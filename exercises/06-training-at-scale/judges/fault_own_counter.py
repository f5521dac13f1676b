"""Judges a repaired copy: a step that is done twice sees the same batch twice."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("the losses of steps that were done twice differ by up to {off}"),
    "no-crash": Way("no step was done twice: let it crash as it does by itself, some steps after a save"),
}
RUNS = {
    "right": {"repeated_steps": 3, "repeat_off": 0.0, "loss_off": 0.0},
    "wrong": {"repeated_steps": 3, "repeat_off": 0.31, "loss_off": 0.42},
}


def judge(part: Part) -> None:
    """Repeated steps have equal losses, and all losses are those of the undisturbed training."""
    metrics = part.metrics
    if not metrics["repeated_steps"]:
        raise part.wrong("no-crash")
    off = max(metrics["repeat_off"], metrics["loss_off"])
    if not off <= 1e-6:
        raise part.wrong("still", off=off)
    part.note("each step has the batch of its number, in every life")
