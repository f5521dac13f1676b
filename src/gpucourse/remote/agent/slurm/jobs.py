"""The jobs of a run: those that were submitted, and those that its own jobs submitted from within its folder."""

from __future__ import annotations

import os

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands, words
from gpucourse.remote.agent.slurm.words import Row

MAX_LATER_JOBS = 1000
"""The limit for later jobs that are reported."""

WATCH = "watch"
"""The lock of the process that asks Slurm about a run, so that a change is reported once."""


def read_request(job: Job) -> Row:
    """Return what was requested of Slurm for this run."""
    request: Row = job.read("slurm.json").get("slurm", {})
    return request


def list_submitted_jobs(job: Job) -> list[Row]:
    """Return the submitted jobs. Each has an `id`, a `file`, the number of its `tasks` (0: no array) or their `numbers`, and
    `asked`, which says whether the exercise itself requested its end."""
    submitted: list[Row] = job.read("jobs.json").get("jobs", [])
    return submitted


def remember(job: Job, number: str, file: Row) -> None:
    """Record that a file was submitted as that job."""
    entry = {"id": number, "file": file["name"], "tasks": file["tasks"], "numbers": file.get("numbers")}
    job.write("jobs.json", {"jobs": [*list_submitted_jobs(job), entry]}, flush=True)


def recover(job: Job) -> None:
    """Complete the list of submitted jobs from Slurm's list if the submitting process was killed."""
    if not (job.has("submitted") or job.has("done") or job.is_supervised()):
        adopt_lost_jobs(job, read_request(job).get("files", []))


def adopt_lost_jobs(job: Job, files: list[Row]) -> None:
    """Record the jobs that Slurm has for this run's folder and that are missing in the run's list, because a submission was cut
    short."""
    submitted = {entry["id"] for entry in list_submitted_jobs(job)}
    for queued in list_queued_jobs(job):
        if queued["job"] in submitted:
            continue
        file = next((file for file in files if file["job_name"] == queued["name"]), None)
        if file is not None:
            remember(job, queued["job"], file)


def make_rows(job: Job) -> list[Row]:
    """Return one row for each job, or task of an array, as it is before anything is known about it."""
    rows: list[Row] = []
    for submitted in list_submitted_jobs(job):
        tasks = submitted["numbers"] or range(submitted["tasks"])
        for name in [f"{submitted['id']}_{task}" for task in tasks] or [submitted["id"]]:
            row = {"row": len(rows), "job": name, "file": submitted["file"], "state": "SUBMITTED"}
            rows.append(dict(row, asked=bool(submitted.get("asked")), restarts=0, code=None))
    return rows


def list_later_jobs(job: Job) -> list[Row]:
    """Return the jobs that this run's own jobs submitted and that have not ended, each with its number, name and state."""
    submitted = {entry["id"] for entry in list_submitted_jobs(job)}
    return [queued for queued in list_queued_jobs(job, with_ended=False) if queued["job"] not in submitted][:MAX_LATER_JOBS]


def list_queued_jobs(job: Job, *, with_ended: bool = True) -> list[Row]:
    """Return the jobs that Slurm has for this run's folder and the folders below it; include jobs that have ended only if
    `with_ended` is set."""
    root = os.path.join(os.path.realpath(job.folder), "")
    queued: dict[str, Row] = {}
    for line in commands.ask("squeue", "-h", "-a", "-t", "all", "-u", commands.user_name(), "-o", "%F|%T|%j|%Z").splitlines():
        number, _, remainder = line.strip().partition("|")
        state, _, remainder = remainder.partition("|")
        name, _, folder = remainder.rpartition("|")  # a name may contain anything
        is_below = os.path.join(os.path.realpath(folder), "").startswith(root)
        if number.isdigit() and is_below and (with_ended or words.phase(state) != words.ENDED):
            queued.setdefault(number, {"job": number, "name": name, "state": state})
    return [queued[number] for number in sorted(queued, key=int)]
