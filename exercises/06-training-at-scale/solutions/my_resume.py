"""A solution of 6.5: which checkpoint a training continues from, and how often it saves one."""

from __future__ import annotations

import math
import re
from pathlib import Path


def latest(folder: Path) -> Path | None:
    """Return the checkpoint to continue from: of those in `folder` that are whole, the one of the latest step; None if none
    is."""
    candidates = folder.iterdir() if folder.is_dir() else ()
    steps = {path: re.fullmatch(r"step_(\d+)", path.name) for path in candidates}
    whole = {int(name[1]): path for path, name in steps.items() if name and (path / ".metadata").is_file()}
    return whole[max(whole)] if whole else None


def save_every(cost_s: float, step_s: float, mtbf_s: float) -> int:
    """After how many steps the next checkpoint is saved, at least 1. Young (1974): sqrt(2 x cost x MTBF)."""
    interval_s = math.sqrt(2 * cost_s * mtbf_s)
    return max(1, round(interval_s / step_s))
