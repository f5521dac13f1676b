"""A new course: a template with one module and one exercise, the helpers that all courses may use, and schemas for editors."""

from __future__ import annotations

from pathlib import Path

from gpucourse.course.locate import find_course, find_template
from gpucourse.course.rules import SHARED
from gpucourse.course.schema import write_schema
from gpucourse.errors import UsageError
from gpucourse.storage import write_bytes

HELPERS = ("bench.py", "ranks.py")
"""The helpers that `dev new` copies into `exercises/shared`. Every course may upload them with its scripts."""


def start_course(folder: Path) -> tuple[str, ...]:
    """Write a course with one exercise into `folder`, which is created if it is missing. Return the paths of the files in the
    folder.

    Raises UsageError if the folder is not empty, and StorageError if it cannot be written to.
    """
    root = folder.expanduser().absolute()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        state = "already contains files" if root.is_dir() else "is a file"
        raise UsageError(f"{root} {state}, but a new course needs an empty folder", hint="gpucourse dev new DIR")
    template, shared = find_template(), find_course({}).exercises / SHARED
    sources = {path.relative_to(template): path for path in sorted(template.rglob("*")) if path.is_file()}
    sources |= {Path("exercises", SHARED, name): shared / name for name in HELPERS}
    source_files = {place: path for place, path in sources.items() if path.suffix != ".pyc"}
    for place, path in source_files.items():
        write_bytes(root / place, path.read_bytes())
    schemas = write_schema(root / "modules")
    return tuple(
        sorted([*(place.as_posix() for place in source_files), *(path.relative_to(root).as_posix() for path in schemas)])
    )
