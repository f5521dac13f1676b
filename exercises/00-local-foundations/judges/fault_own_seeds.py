"""Judge a repaired copy: the shares of all ranks must come from one order of the samples."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{missing} samples still belong to no rank in an epoch, and {twice} are in more than one share")}
RUNS = {
    "right": {"samples": 512, "samples_missing": 0, "samples_twice": 0, "samples_twice_expected": 0},
    "wrong": {"samples": 512, "samples_missing": 131, "samples_twice": 131, "samples_twice_expected": 0},
}


def judge(part: Part) -> None:
    """Check that the shares of an epoch contain every sample, and no sample twice, apart from padding."""
    missing, twice = part.metrics["samples_missing"], part.metrics["samples_twice"]
    if missing or twice != part.metrics["samples_twice_expected"]:
        raise part.wrong("still", missing=missing, twice=twice)
    part.note(f"each of the {part.metrics['samples']} samples is in a share, and no more often than padding needs")
