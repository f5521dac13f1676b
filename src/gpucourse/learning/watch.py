"""`watch`: reports which of the learner's files were saved, as soon as they are complete."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from gpucourse.context import Context
from gpucourse.course.part_files import find_syntax_error
from gpucourse.learning.next_ import find_next_step
from gpucourse.model.manifest import Exercise
from gpucourse.workspace.exercises import ensure_copies

POLL_S = 0.25  # also how long a file must be unchanged before it counts as saved

Stamp = tuple[int, int, int]


def find_current_exercise(context: Context) -> Exercise:
    """Return the exercise of the next step, or the first if all are done. Raises MissingError for a course without
    exercises."""
    return find_next_step(context).exercise or context.catalog.modules[0].exercises[0]


def list_watched_files(context: Context, exercise: Exercise) -> tuple[Path, ...]:
    """Return the files to watch for an exercise: the learner's copies of the uploaded files, the parts, and the answer
    sheet."""
    catalog = context.catalog
    names = dict.fromkeys([*catalog.sources(exercise).values(), *catalog.part_places(exercise).values()])
    ensure_copies(context.paths, context.folders.exercises, names)
    return (*(context.paths.exercises / name for name in names), context.paths.answers(exercise.id))


def list_judged_files(context: Context, exercise: Exercise) -> frozenset[Path]:
    """Return the learner's parts that have a judge, which `try` judges without a run."""
    places = context.catalog.part_places(exercise)
    return frozenset(context.paths.exercises / places[part.id] for part in exercise.yours if part.judge)


def read_stamps(files: tuple[Path, ...]) -> dict[Path, Stamp]:
    """Return each file's modification time in ns, size in bytes and inode. Missing files are left out."""
    stamps: dict[Path, Stamp] = {}
    for path in files:
        try:
            about = path.stat()
        except OSError:
            continue
        stamps[path] = (about.st_mtime_ns, about.st_size, about.st_ino)
    return stamps


def wait_for_saves(
    stop: threading.Event,
    files: tuple[Path, ...],
    *,
    poll_s: float = POLL_S,
    look: Callable[[tuple[Path, ...]], dict[Path, Stamp]] = read_stamps,
    earlier: dict[Path, Stamp] | None = None,
    read_key: Callable[[float], str] | None = None,
) -> Iterator[tuple[Path, ...] | str]:
    """Yield the files that were saved, each time some were saved and are complete, until `stop` is set.

    `earlier`: the stamps to compare with first; by default, those that the files have now.
    `read_key`: waits at most this many seconds for a key, and returns it, or an empty string. A key is yielded immediately.
    """
    earlier = look(files) if earlier is None else earlier
    while not stop.is_set():
        if key := read_key(poll_s) if read_key else "":
            yield key
            continue
        if read_key is None and stop.wait(poll_s):
            return
        stamps = look(files)
        if stamps == earlier:
            continue
        while not stop.wait(poll_s) and (new_stamps := look(files)) != stamps:
            stamps = new_stamps
        changed_files = tuple(path for path in files if path in stamps and stamps[path] != earlier.get(path))
        earlier = earlier | stamps
        if changed_files and not stop.is_set():
            yield changed_files


def describe_syntax_error(files: tuple[Path, ...]) -> str | None:
    """Return `file.py:3: what is wrong` for the first file that is not valid Python, or None if all are valid."""
    for path in files:
        if (error := find_syntax_error(path)) is not None:
            return f"{path.name}{f':{error.lineno}' if error.lineno else ''}: {error.msg}"
    return None
