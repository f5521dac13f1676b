"""Copy files from the node's store of uploads (`~/.gpucourse/store/<key>`, one file for each content) to the work folder of a
run.

A run's work folder contains copies, so a script may write to every file there without changing the store.

After the run, each large file that it left unchanged becomes a link to the store's own file, which is read-only. So the disk
stores an unchanged file once, however many runs used it.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from typing import Any

from gpucourse.remote.agent.job import Job, JobRefused, home

LINKED_FROM = 1 << 20
"""Smaller files stay copies, because they need little space."""


def lay_out(files: list[dict[str, Any]], folder: str) -> None:
    """Make the work folder from scratch. Copy each file from the store to its own name."""
    if os.path.lexists(folder):
        shutil.rmtree(folder)
    os.makedirs(folder, 0o700)
    lacking = [file["name"] for file in files if not os.path.exists(_blob(file["key"]))]
    if lacking:
        raise JobRefused(f"{len(lacking)} files are not in the store; the first is {lacking[0]!r}", "missing")
    for file in files:
        target = os.path.join(folder, file["name"])
        os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
        shutil.copyfile(_blob(file["key"]), target)
        os.chmod(target, 0o700 if file.get("executable") else 0o600)


def read_upload_times(job: Job) -> dict[str, float]:
    """Return the time at which each uploaded file was put into the work folder, by the file's name."""
    laid_out = os.path.getmtime(job.path("started")) if job.has("started") else 0.0
    return {file["name"]: laid_out for file in _uploads(job)}


def is_unchanged(path: str, laid_out: float | None) -> bool:
    """Return whether an uploaded file has not been written to since the run began. Return False for a file that was not
    uploaded."""
    return laid_out is not None and find_last_change(os.lstat(path)) <= laid_out


def find_last_change(info: os.stat_result) -> float:
    """Return when a file was last written to.

    A program may set the time of the content back (`cp -p`, `tar`), but not the time of the inode. If the inode has other
    links, its time only shows when the last link was made.
    """
    return info.st_mtime if info.st_nlink > 1 else max(info.st_mtime, info.st_ctime)


def share(job: Job) -> None:
    """Replace the large files that an ended run left unchanged with links to the store. If links are impossible, keep the
    copies."""
    work, upload_times = os.path.realpath(job.path("work")), read_upload_times(job)
    for file in _uploads(job):
        name = file["name"]
        with suppress(OSError):  # it is gone, or the store is on another disk
            _share(os.path.join(work, name), _blob(file["key"]), upload_times[name])


def _share(path: str, blob: str, laid_out: float) -> None:
    info, stored = os.lstat(path), os.stat(blob)
    is_copy = stat.S_ISREG(info.st_mode) and (info.st_dev, info.st_ino) != (stored.st_dev, stored.st_ino)
    has_link = os.path.realpath(path) != path  # a folder on its path is a link: the file there is not the run's copy
    if (
        has_link
        or not is_copy
        or info.st_size < LINKED_FROM
        or info.st_size != stored.st_size
        or not is_unchanged(path, laid_out)
    ):
        return
    os.chmod(blob, 0o400)
    aside = f"{path}.{os.getpid()}.link"
    os.link(blob, aside)
    os.replace(aside, path)


def _uploads(job: Job) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = job.read("job.json").get("files", [])
    return files


def _blob(key: str) -> str:
    return os.path.join(home(), "store", key)
