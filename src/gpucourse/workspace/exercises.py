"""Make the learner's copies of the exercises. A copy is updated until the learner edits it, and never overwritten
afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpucourse.errors import MissingError
from gpucourse.storage import FileBatch, make_folder, storage_error, storing
from gpucourse.workspace.files import changing, copy_file
from gpucourse.workspace.paths import WorkspacePaths
from gpucourse.workspace.seals import sha256


def ensure_copies(paths: WorkspacePaths, course: Path, names: Iterable[str]) -> list[str]:
    """Copy the named files (relative to the course's exercises) into the workspace if they are missing.

    A copy that the learner never edited is updated when the course changes. An edited copy is kept. Return the names of edited
    copies whose original in the course has changed since.
    """
    behind = []
    with changing(paths, paths.originals) as originals:
        batch = FileBatch(paths.exercises / ".copies")  # one sync for all files
        for name in names:
            source, copy = course / name, paths.exercises / name
            original = sha256(source)
            if original is None:
                raise MissingError(
                    f"the course has no file exercises/{name}", hint="reinstall it: pip install --force-reinstall gpucourse"
                )
            if copy.exists() and not copy.is_file():  # a folder of that name belongs to the learner
                continue
            if not copy.exists() or (sha256(copy) == originals.get(name) != original):
                with storing(copy):
                    make_folder(copy.parent)
                batch.write(str(copy), [source.read_bytes()])
            elif originals.get(name) not in {original, None}:
                behind.append(name)
                continue
            originals[name] = original
        for name, error in batch.commit().items():
            raise storage_error(error, Path(name)) or error
    return behind


def restore(paths: WorkspacePaths, course: Path, names: Iterable[str], stamp: str) -> dict[str, Path | None]:
    """Replace the named copies that differ from the course's files, and save the learner's versions.

    For each replaced file, return the path of the learner's saved version, or None if there was no copy.
    """
    restored: dict[str, Path | None] = {}
    with changing(paths, paths.originals) as originals:
        for name in names:
            source, copy = course / name, paths.exercises / name
            original = sha256(source)
            if copy.is_file() and sha256(copy) == original:
                continue
            restored[name] = None
            if copy.is_file():
                restored[name] = paths.reset_backups / stamp / name
                copy_file(copy, paths.reset_backups / stamp / name)
            copy_file(source, copy)
            originals[name] = original
    return restored


def all_names(course: Path) -> list[str]:
    """Return the names of all files of the exercises, relative to `course`, without solutions and judges."""
    files = (path.relative_to(course) for path in sorted(course.rglob("*")) if path.is_file())
    return [name.as_posix() for name in files if not {"solutions", "judges", "__pycache__"} & set(name.parts)]
