"""Judges a repaired copy: DDP must not synchronise during the inner micro-batches."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{steps} micro-batches send {saved} times less than with a sync after each; expected {steps} times")}
RUNS = {
    "right": {"accumulation_steps": 8, "calls_saved_times": 8.0},
    "wrong": {"accumulation_steps": 8, "calls_saved_times": 1.0},
}


def judge(part: Part) -> None:
    """Check that there is one all-reduce per group and bucket, not one per micro-batch."""
    saved, steps = part.metrics["calls_saved_times"], part.metrics["accumulation_steps"]
    if saved is None or abs(saved - steps) > 1e-6:
        raise part.wrong("still", saved=saved, steps=steps)
    part.note(f"{steps} micro-batches, and one round of all-reduces")
