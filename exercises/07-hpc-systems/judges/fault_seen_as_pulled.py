"""Judge a repaired copy: a pull fetches every file of every layer."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{given:,} MB are pulled, but the files of the layers add up to {right:,} MB")}
FILES = [{"mb": 800, "kernel": False}, {"mb": 820, "kernel": True}, {"mb": None, "kernel": False}]
RUNS = {"right": {"files": FILES, "pulled_mb": 1620}, "wrong": {"files": FILES, "pulled_mb": 820}}


def judge(part: Part) -> None:
    """Require that the files of all layers are pulled, whether a program sees them or not."""
    right = sum(row["mb"] or 0 for row in part.metrics["files"])
    if part.metrics["pulled_mb"] != right:
        raise part.wrong("still", given=part.metrics["pulled_mb"], right=right)
    part.note(f"all {right:,} MB of the layers are pulled")
