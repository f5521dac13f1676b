"""`init`: the learner's own copies of the exercises."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.workspace.exercises import all_names, ensure_copies


def copy_exercises(context: Context) -> int:
    """Copy every exercise file that the workspace does not have yet; return how many files the course has."""
    names = all_names(context.folders.exercises)
    ensure_copies(context.paths, context.folders.exercises, names)
    return len(names)
