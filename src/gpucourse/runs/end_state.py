"""The end of a run in one word, from the ends of its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.model.record import NodeExit, RunState

# The most important reason comes first: a deadline and a lost node explain the other ends, a cancelled node follows from them.
_WEIGHT: tuple[tuple[str, RunState], ...] = (
    ("timed_out", "timed_out"),
    ("lost", "lost"),
    ("exited", "failed"),
    ("cancelled", "cancelled"),
)


def end_state(exits: Sequence[NodeExit]) -> RunState:
    """Return `succeeded` if every node exited with 0; otherwise the most important reason. Without any exit the run is lost."""
    if not exits:
        return "lost"
    reasons = {end.reason for end in exits if end.code != 0 or end.reason != "exited"}
    return next((state for reason, state in _WEIGHT if reason in reasons), "succeeded")
