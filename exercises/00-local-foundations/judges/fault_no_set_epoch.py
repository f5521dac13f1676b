"""Judges a repaired copy: each epoch must have a different order."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{count} later epochs still have the same order as the first (None: too few samples or epochs to tell)")}
RUNS = {
    "right": {"epochs": 3, "epochs_in_the_order_of_the_first": 0},
    "wrong": {"epochs": 3, "epochs_in_the_order_of_the_first": 2},
}


def judge(part: Part) -> None:
    """Check that no later epoch has the same order as the first."""
    repeated = part.metrics["epochs_in_the_order_of_the_first"]
    if repeated is None or repeated > 0:
        raise part.wrong("still", count=repeated)
    part.note(f"{part.metrics['epochs']} epochs, each in a different order")
