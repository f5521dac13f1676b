"""The folder for temporary files of one run (TMPDIR): inside the job's folder, and gone with the run's last process."""

from __future__ import annotations

import hashlib
import os
import shutil

from gpucourse.remote.agent.job import Job

LONGEST = 60
"""Bytes. Programs put sockets below TMPDIR, with names of up to 40 bytes, and a socket's whole path has at most 103."""

LINKS = "/tmp/gpucourse-"  # noqa: S108 (only a link of ours, which is compared before it is used)


def make(job: Job, links: str = LINKS, longest: int = LONGEST) -> str:
    """Make the folder; the path to give to the run. Where the job's own path is too long for sockets, a short link to it."""
    folder, link = job.path("tmp"), link_of(job, links)
    os.makedirs(folder, 0o700, exist_ok=True)
    if len(os.fsencode(folder)) <= longest:
        return folder
    try:
        os.symlink(folder, link)
    except OSError:
        if not _leads_to(link, folder):  # somebody else's: then sockets have to do with the long path
            return folder
    return link


def remove(job: Job, links: str = LINKS) -> None:
    """Remove the folder with everything in it, and the link."""
    link = link_of(job, links)
    if _leads_to(link, job.path("tmp")):
        os.unlink(link)
    shutil.rmtree(job.path("tmp"), ignore_errors=True)


def link_of(job: Job, links: str = LINKS) -> str:
    """The short path: one for each job folder."""
    return links + hashlib.sha256(os.fsencode(job.folder)).hexdigest()[:12]


def _leads_to(link: str, folder: str) -> bool:
    try:
        return os.lstat(link).st_uid == os.getuid() and os.readlink(link) == folder
    except OSError:
        return False
