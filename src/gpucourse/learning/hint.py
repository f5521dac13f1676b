"""`hint`: the next hint of an exercise, one at a time."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.model.manifest import Exercise
from gpucourse.workspace.mapping import changing


def next_hint(context: Context, exercise_id: str) -> tuple[Exercise, int]:
    """Return the exercise and the number (from 1) of its next hint, and store that number. After the last hint, return the last
    one again."""
    _, exercise = context.catalog.exercise(exercise_id)
    with changing(context.paths, context.paths.hints) as counts:
        count = counts.get(exercise.id, 0)
        counts[exercise.id] = min((count if isinstance(count, int) else 0) + 1, len(exercise.hints))
    return exercise, counts[exercise.id]
