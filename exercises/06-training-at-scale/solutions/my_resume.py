"""A solution of 6.5: the newest whole checkpoint, and Young's interval."""

from __future__ import annotations

import math
import re
from pathlib import Path


def latest(folder: Path) -> Path | None:
    """Return the checkpoint to continue from: the latest whole one in `folder`, or None if there is none."""
    candidates = folder.iterdir() if folder.is_dir() else ()
    steps = {path: re.fullmatch(r"step_(\d+)", path.name) for path in candidates}
    whole = {int(name[1]): path for path, name in steps.items() if name and (path / ".metadata").is_file()}
    return whole[max(whole)] if whole else None


def save_every(cost_s: float, step_s: float, mtbf_s: float) -> int:
    """Return the number of steps after which the next checkpoint is saved, at least 1. Young (1974): sqrt(2 x cost x MTBF)."""
    interval_s = math.sqrt(2 * cost_s * mtbf_s)
    return max(1, round(interval_s / step_s))
