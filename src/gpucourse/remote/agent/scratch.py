"""Make the folder for temporary files of one run (TMPDIR), inside the job's folder. It is removed after the run's last process
has ended.

Also make the cache folders of libraries, which all runs of the node share, next to the jobs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress

from gpucourse.remote.agent.job import Job, home

MAX_PATH = 60
"""The maximum number of bytes in the path of TMPDIR. Programs make sockets there, with names of up to 40 bytes, and a socket's
whole path may have at most 103 bytes."""

LINKS = "/tmp/gpucourse-"  # noqa: S108 (only a link of ours, which is compared before it is used)


CACHES = {
    "TRITON_CACHE_DIR": "triton",
    "MPLCONFIGDIR": "matplotlib",
    "NUMBA_CACHE_DIR": "numba",
    "CUDA_CACHE_PATH": "cuda",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "torch_extensions",
    "GPUCOURSE_CACHE": "course",
}
"""The variable that names each cache, and the cache's folder below `cache`. Libraries and exercises keep these caches from one
run to the next. They are removed with the lab."""


def make_caches(environ: Mapping[str, str]) -> dict[str, str]:
    """Make a folder for each cache, and return the variables that name these folders. Variables that are already set are left
    out."""
    places = {name: os.path.join(home(), "cache", folder) for name, folder in CACHES.items() if name not in environ}
    for place in places.values():
        os.makedirs(place, 0o700, exist_ok=True)
    return places


def make(job: Job, links: str = LINKS, max_length: int = MAX_PATH) -> str:
    """Make the folder and return its path for the run.

    The result is a short link to the folder if the folder's own path is too long for sockets. It is also a link if the path
    contains a colon, which separates paths in a list.
    """
    folder, link = job.path("tmp"), link_of(job, links)
    os.makedirs(folder, 0o700, exist_ok=True)
    if len(os.fsencode(folder)) <= max_length and os.pathsep not in folder:
        return folder
    try:
        os.symlink(folder, link)
    except OSError:
        if not _leads_to(link, folder):  # it belongs to another user: sockets then have to use the long path
            return folder
    return link


def avoid_colon(job: Job, folder: str) -> str:
    """Return a path to the folder that contains no colon, because PYTHONPATH is split at colons.

    If the folder's own path contains a colon, the result is a link in the run's folder for temporary files.
    """
    if os.pathsep not in folder:
        return folder
    link = os.path.join(make(job), f".{os.path.basename(folder)}")
    with suppress(FileExistsError):
        os.symlink(folder, link)
    return link


def make_shared(job: Job, on_one_machine: Callable[[], bool], max_length: int = MAX_PATH) -> str:
    """Make the folder for jobs on several machines that share the job's folder. The short link must also be shared, so it is
    next to the jobs.

    If even the link's path is too long, use a link in LINKS if `on_one_machine` returns True; otherwise return an empty string.
    """
    if len(os.fsencode(link_of(job, _links_nearby()))) <= max_length:
        return make(job, _links_nearby(), max_length)
    return make(job, LINKS, max_length) if on_one_machine() else ""


def remove(job: Job, links: str = LINKS) -> None:
    """Remove the folder with its contents, and the links to it."""
    for link in (link_of(job, links), link_of(job, _links_nearby())):
        if _leads_to(link, job.path("tmp")):
            with suppress(FileNotFoundError):  # the process that removes the node removes the link as well
                os.unlink(link)
    shutil.rmtree(job.path("tmp"), ignore_errors=True)


def _links_nearby() -> str:
    """Return the path prefix for short links next to the jobs. The caller appends a name."""
    return os.path.join(home(), "tmp-")


def link_of(job: Job, links: str = LINKS) -> str:
    """Return the path of the short link to a job's folder for temporary files. Each job has a different link.

    The removal of a lab on existing machines uses the same name (`remote/host_probe.py`).
    """
    import hashlib  # four milliseconds, which a job with a short path saves

    return links + hashlib.sha256(os.fsencode(job.folder)).hexdigest()[:12]


def _leads_to(link: str, folder: str) -> bool:
    try:
        return os.lstat(link).st_uid == os.getuid() and os.readlink(link) == folder
    except OSError:
        return False
