"""Write the page's folder. The new folder is written next to the old one and then replaces it, so that a reader never sees
half a page."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gpucourse.errors import UsageError
from gpucourse.storage import storing

MARK = ".gpucourse-page"
"""The file that marks a folder as written by `open`, so that `open` may replace the folder."""


def write_folder(folder: Path, files: Iterable[tuple[str, bytes]]) -> int:
    """Write all files into `folder`, in place of the earlier page, and return how many there are.

    The files are not flushed one by one, because they can be made again. Raises UsageError if the folder contains something
    other than a page, and StorageError if it cannot be written.
    """
    check_folder(folder)
    with storing(folder):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        except FileNotFoundError as error:  # as in /proc, where no folder can be created
            raise UsageError(f"cannot make the folder {folder}", hint="gpucourse open --out DIR") from error
        try:
            aside.chmod(0o755)
            count = _write(aside, files)
            if folder.exists():
                old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
                folder.replace(old)
                aside.replace(folder)
                shutil.rmtree(old)
            else:
                aside.replace(folder)
        except BaseException:
            with suppress(OSError):
                shutil.rmtree(aside)
            raise
    return count


def check_folder(folder: Path) -> None:
    """Check that a page may be written into `folder`. Raises UsageError if it is no folder, or contains something other than a
    page."""
    hint = "gpucourse open --out DIR, with a folder that is new or empty"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} is not a folder", hint=hint)
    if folder.exists() and not _is_ours(folder):
        raise UsageError(
            f"{folder} contains something that is not a page of gpucourse, so nothing was written there", hint=hint
        )


def update_folder(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write the files that differ from those in a folder of the page. Raises StorageError if a file cannot be written.

    Each new file replaces the old one in one step. A file that did not change keeps its modification time.
    """
    with storing(folder):
        for name, data in files:
            path = folder.joinpath(name)
            if not path.is_file() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                aside = path.with_name(f".{path.name}.next")
                aside.write_bytes(data)
                aside.replace(path)


def _write(folder: Path, files: Iterable[tuple[str, bytes]]) -> int:
    folder.joinpath(MARK).write_bytes(b"")
    count = 0
    for name, data in files:
        path = folder.joinpath(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        count += 1
    return count


def _is_ours(folder: Path) -> bool:
    """Return whether the folder is empty or was written by `open`."""
    return folder.joinpath(MARK).is_file() or not any(folder.iterdir())
