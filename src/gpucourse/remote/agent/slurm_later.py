"""Jobs that a run's own jobs submitted, and that still run when these have ended: their output belongs to the run."""

from __future__ import annotations

import os

from gpucourse.remote.agent import scratch, slurm_jobs
from gpucourse.remote.agent import slurm_words as say
from gpucourse.remote.agent.job import Job

MOST = 1000
"""How many of them are reported."""


def list_later_jobs(job: Job) -> list[dict[str, object]]:
    """Return every job that was submitted below this run's folder, besides the run's own, and has not ended: number, name,
    state."""
    own = {str(entry["id"]) for entry in slurm_jobs.list_submitted_jobs(job)}
    root = os.path.join(os.path.realpath(job.folder), "")
    jobs_by_number: dict[str, dict[str, object]] = {}
    for line in slurm_jobs.ask(
        "squeue", "-h", "-a", "-t", "all", "-u", slurm_jobs.user_name(), "-o", "%F|%T|%j|%Z"
    ).splitlines():
        number, _, rest = line.strip().partition("|")
        state, _, rest = rest.partition("|")
        name, _, folder = rest.rpartition("|")  # a name may hold anything
        below = os.path.join(os.path.realpath(folder), "").startswith(root)
        if below and number.isdigit() and number not in own and say.phase(state) != say.ENDED:
            jobs_by_number.setdefault(number, {"job": number, "name": name, "state": state})
    return [jobs_by_number[number] for number in sorted(jobs_by_number, key=int)][:MOST]


def tell_later_jobs(job: Job) -> dict[str, object]:
    """Return such jobs as they are now. When the last of them has ended, the folder for temporary files is removed."""
    later = list_later_jobs(job)
    if job.has("done") and not later:
        scratch.remove(job)
    return {"jobs": later}
