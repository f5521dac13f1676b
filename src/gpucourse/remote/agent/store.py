"""Copy files from the node's store of uploads (`~/.gpucourse/store/<key>`, one file for each content) to the work folder of a
run.

A run's work folder contains copies, so a script may write to every file there without changing the store.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

from gpucourse.remote.agent.job import Job, JobRefused, home


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
    return {file["name"]: laid_out for file in job.read("job.json").get("files", [])}


def is_unchanged(path: str, laid_out: float | None) -> bool:
    """Return whether an uploaded file has not been written to since the run began. Return False for a file that was not
    uploaded."""
    return laid_out is not None and find_last_change(os.lstat(path)) <= laid_out


def find_last_change(info: os.stat_result) -> float:
    """Return when a file was last written to.

    A program may set the time of the content back (`cp -p`, `tar`), but not the time of the inode.
    """
    return max(info.st_mtime, info.st_ctime)


def _blob(key: str) -> str:
    return os.path.join(home(), "store", key)
