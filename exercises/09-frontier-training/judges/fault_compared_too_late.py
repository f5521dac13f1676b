"""Judge a repaired copy: a gradient and its recomputation on another rank may differ only by a flipped bit."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("{count} checks see a flipped bit although none has flipped"),
    "unseen": Way("a bit flips before the sum, and no rank that computes the gradient again sees it"),
}
RUNS = {
    "right": {"silent_seen_by_replay": True, "false_alarms": 0},
    "wrong": {"silent_seen_by_replay": True, "false_alarms": 1},
}


def judge(part: Part) -> None:
    """Require that the replay reports the flipped bit, and no other difference."""
    if part.metrics["false_alarms"]:
        raise part.wrong("still", count=part.metrics["false_alarms"])
    if not part.metrics["silent_seen_by_replay"]:
        raise part.wrong("unseen")
    part.note("another rank's computation differs in the step of the fault, and in no other job")
