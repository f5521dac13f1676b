"""From the node's store of uploads (`~/.gpucourse/store/<key>`, one for each content) to the work folder of a run, and back.

While a run is under way it has copies: a script may write to every file in its folder, and none of that reaches the store (if
the disk can share blocks between copies, it does). When the run has ended, each large file that it left unchanged becomes a
link to the store's own file, which is read-only. So the disk holds an unchanged file once, however many runs had it.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress

from gpucourse.remote.agent.job import Job, JobRefused, home

TYPE_CHECKING = False  # `typing` takes two milliseconds to import
if TYPE_CHECKING:
    from typing import IO, Any

LINKED_FROM = 1 << 20
"""Smaller files stay copies: they need little room."""

_PIECE = 1 << 30


def lay_out(files: list[dict[str, Any]], folder: str) -> None:
    """Make the work folder again from scratch: each file copied from the store under its own name."""
    if os.path.lexists(folder):
        shutil.rmtree(folder)
    os.makedirs(folder, 0o700)
    lacking = [file["name"] for file in files if not os.path.exists(_blob(file["key"]))]
    if lacking:
        raise JobRefused(f"{len(lacking)} files are not in the store, first {lacking[0]!r}", "missing")
    for file in files:
        name = file["name"]
        parts = name.split("/")
        if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
            raise JobRefused(f"not a name for a file in the work folder: {name!r}")
        target = os.path.join(folder, *parts)
        os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
        with open(_blob(file["key"]), "rb", buffering=0) as source, open(target, "wb") as copy:
            _copy(source, copy)
        os.chmod(target, 0o700 if file.get("executable") else 0o600)


def read_upload_times(job: Job) -> dict[str, float]:
    """Return when each uploaded file was put into the work folder, by its name."""
    laid_out = os.path.getmtime(job.path("started")) if job.has("started") else 0.0
    return {file["name"]: laid_out for file in _uploads(job)}


def is_unchanged(path: str, laid_out: float | None) -> bool:
    """Return whether an uploaded file was not written to since the run began; False for one that was not uploaded."""
    return laid_out is not None and find_last_change(os.lstat(path)) <= laid_out


def find_last_change(info: os.stat_result) -> float:
    """Return when a file was last written to. A program may set the time of the content back (`cp -p`, `tar`), but not that of
    the inode; if the inode has other links, its time shows only when the last link was made."""
    return info.st_mtime if info.st_nlink > 1 else max(info.st_mtime, info.st_ctime)


def share(job: Job) -> None:
    """Replace the large files that an ended run left unchanged by links to the store. If links are not possible, they stay
    copies."""
    work, brought = os.path.realpath(job.path("work")), read_upload_times(job)
    for file in _uploads(job):
        name = file["name"]
        with suppress(OSError):  # it is gone, or the store is on another disk
            _share(os.path.join(work, name), _blob(file["key"]), brought[name])


def _share(path: str, blob: str, laid_out: float) -> None:
    info, stored = os.lstat(path), os.stat(blob)
    is_copy = stat.S_ISREG(info.st_mode) and (info.st_dev, info.st_ino) != (stored.st_dev, stored.st_ino)
    moved = os.path.realpath(path) != path  # a folder on its path is a link: the file there is not the run's copy
    if moved or not is_copy or info.st_size < LINKED_FROM or info.st_size != stored.st_size or not is_unchanged(path, laid_out):
        return
    os.chmod(blob, 0o400)
    aside = f"{path}.{os.getpid()}.link"
    os.link(blob, aside)
    os.replace(aside, path)


def _copy(source: IO[bytes], copy: IO[bytes]) -> None:
    """Copy the content within the kernel, which shares the blocks if the disk can; by hand if that fails."""
    left = os.fstat(source.fileno()).st_size
    in_kernel = getattr(os, "copy_file_range", None)  # Linux, from Python 3.8 on
    with suppress(OSError):  # not possible on these disks: the rest is copied by hand, which also notices a full disk
        while in_kernel is not None and left:
            count = in_kernel(source.fileno(), copy.fileno(), min(left, _PIECE))
            if not count:
                break
            left -= count
    shutil.copyfileobj(source, copy, 1 << 20)


def _uploads(job: Job) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = job.read("job.json").get("files", [])
    return files


def _blob(key: str) -> str:
    if not key or not all(char.isalnum() or char == "-" for char in key):
        raise JobRefused(f"not a key: {key!r}")
    return os.path.join(home(), "store", key)
