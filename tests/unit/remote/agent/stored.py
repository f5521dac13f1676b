"""Run with uploaded files on a node, for tests of the node's store and of removed runs."""

from __future__ import annotations

import os
from pathlib import Path

from gpucourse.remote.agent import store, supervise
from gpucourse.remote.agent.job import Job

BIG = store.LINKED_FROM
KEYS = {"big": "b-1", "model.pt": "b-2", "small.py": "s-3"}


def begin(run_id: str) -> tuple[Job, Path]:
    """Return a started run and its work folder."""
    job = Job(run_id)
    for name in ("work", "outputs", "logs"):
        Path(job.path(name)).mkdir(parents=True, exist_ok=True)
    files = [{"name": name, "key": key, "executable": False} for name, key in KEYS.items()]
    job.write("job.json", {"files": files})
    store.lay_out(files, job.path("work"))
    Path(job.path("started")).touch()
    mtime_ns = Path(job.path("started")).stat().st_mtime_ns + 10**9  # the clock of a disk is coarse
    os.utime(job.path("started"), ns=(mtime_ns - 10**6, mtime_ns - 10**6))
    return job, Path(job.path("work"))


def end(job: Job) -> None:
    supervise.finish(job, {"code": 0, "reason": "exited", "seconds": 1.0, "killed": 0})


def write_later(path: Path, data: bytes, mode: str = "wb") -> None:
    """Write a file as a script does some seconds after the start."""
    with path.open(mode) as file:
        file.write(data)
    mtime_ns = path.stat().st_mtime_ns + 2 * 10**9
    os.utime(path, ns=(mtime_ns, mtime_ns))
