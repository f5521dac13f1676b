"""Remove runs that have ended and whose files the client has collected completely."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress

from gpucourse.remote.agent import pack, store
from gpucourse.remote.agent.job import Job, home

KEPT = 5
"""The number of the newest collected runs that are kept."""

_REMOVED = ".removed-"


def prune(run_ids: list[str]) -> None:
    """Remove these runs from this node, except for the newest KEPT. The client must have collected all of them. An id begins
    with the time of its run, so the ids show which runs are the newest.

    A run is kept if it has not ended, or if it has a file that the client cannot have.
    """
    folder = os.path.join(home(), "jobs")
    names = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    for name in names:
        if name.startswith(_REMOVED):  # left by a process that was killed meanwhile
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    for run_id in sorted(names.intersection(run_ids))[:-KEPT]:
        job = Job(run_id)
        with suppress(OSError):  # another start is removing it, or it is not ours to remove: it stays
            is_over = job.has("done") and not job.is_supervised() and not _has_later_jobs(job) and not _has_open_tasks(job)
            if is_over and _is_collected(job):
                aside = os.path.join(folder, _REMOVED + run_id)
                os.rename(job.folder, aside)  # in one step: no half of a run may remain
                shutil.rmtree(aside, ignore_errors=True)


def _is_collected(job: Job) -> bool:
    """Return whether the client has everything that the run made.

    This is the case if no output was refused or has changed since, and the work folder contains only outputs, unchanged
    uploads, and the bytecode of modules.
    """
    packed = job.read(pack.PACKED)
    if not packed:
        return False
    offers, refusals = pack.list_offers(job, packed["globs"])
    infos = [os.lstat(path) for path in offers.values()]
    if refusals or not all(stat.S_ISREG(info.st_mode) and store.find_last_change(info) <= packed["at"] for info in infos):
        return False
    upload_times = store.read_upload_times(job)
    return all(
        name in offers or "__pycache__" in name.split("/") or store.is_unchanged(path, upload_times.get(name))
        for name, path in pack.walk(job.path("work"), "")
    )


def _has_open_tasks(job: Job) -> bool:
    """Return whether a job array was submitted from this run's folder, and other runs of that array have not ended."""
    folder = job.path("tasks")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return any(not os.path.lexists(os.path.join(folder, name, "done")) for name in names)


def _has_later_jobs(job: Job) -> bool:
    """Return whether the run's jobs submitted further jobs to Slurm that may still be working in its folder."""
    return bool(job.read("exit.json").get("later"))
