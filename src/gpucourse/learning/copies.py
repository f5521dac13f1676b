"""The learner's own copies of the exercises. `init` makes them. `reset` replaces them with the course's files, and keeps a
copy of the learner's versions."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import UnknownName
from gpucourse.model.manifest import Exercise
from gpucourse.workspace.exercises import all_names, ensure_copies, restore


@dataclass(frozen=True, kw_only=True)
class Reset:
    """The restored files. Each has the path at which the learner's version was saved, or None if there was no such version.
    Unchanged files are left out."""

    exercise: Exercise
    files: dict[str, Path | None]


def reset(context: Context, exercise_id: str, file: str | None = None) -> Reset:
    """Restore the learner's parts and every file that an exercise sends to the nodes, or only `file`, and return what was
    restored. Files that other exercises use too are included.

    Runs, answers and points stay. Raises UnknownName for an unknown exercise or file, and StorageError if a file cannot be
    written.
    """
    _, exercise = context.catalog.exercise(exercise_id)
    catalog = context.catalog
    places = {part.file: catalog.part_places(exercise)[part.id] for part in exercise.yours}
    places |= catalog.sources(exercise)
    if file is not None and file not in places:
        raise UnknownName("file", file, places, hint=f"files of {exercise.id}: {', '.join(places)}")
    names = dict.fromkeys(places.values() if file is None else [places[file]])
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 1
    while (context.paths.reset_backups / stamp).exists():  # twice in one second: both copies stay
        number += 1
        stamp = f"{stamp.partition('.')[0]}.{number}"
    return Reset(exercise=exercise, files=restore(context.paths, context.folders.exercises, names, stamp))


def copy_exercises(context: Context) -> int:
    """Copy every exercise file that the workspace lacks. Return how many files the course has."""
    names = all_names(context.folders.exercises)
    ensure_copies(context.paths, context.folders.exercises, names)
    return len(names)
