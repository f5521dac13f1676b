"""The jobs of a run: its submitted jobs, and further jobs that these submitted from within the run's folder."""

from __future__ import annotations

import os

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands, words
from gpucourse.remote.agent.slurm.words import Row

MAX_LATER_JOBS = 1000
"""The maximum number of later jobs that are reported."""

WATCH = "watch"
"""The lock that only one process at a time holds to ask Slurm about a run, so that each change is reported only once."""


def read_request(job: Job) -> Row:
    """Return the request to Slurm for this run."""
    request: Row = job.read("slurm.json").get("slurm", {})
    return request


def list_submitted_jobs(job: Job) -> list[Row]:
    """Return the submitted jobs, with these fields.

    `id`: the job's number.
    `file`: the name of the file that was submitted.
    `tasks`: the number of tasks of an array, or 0 if there is no array.
    `numbers`: the numbers of the tasks, if they are not 0, 1, 2 and so on.
    `asked`: whether the exercise itself cancelled the job.
    """
    submitted: list[Row] = job.read("jobs.json").get("jobs", [])
    return submitted


def remember(job: Job, number: str, file: Row) -> None:
    """Record that a file was submitted as that job."""
    entry = {"id": number, "file": file["name"], "tasks": file["tasks"], "numbers": file.get("numbers")}
    job.write("jobs.json", {"jobs": [*list_submitted_jobs(job), entry]}, flush=True)


def find_array_folder(job: Job) -> str:
    """Return the folder from which the run's job was submitted as a task of a job array of several runs. Return an empty
    string if the run has its own job."""
    array = read_request(job).get("array")
    return os.path.realpath(Job(array["runs"][0]).folder) if array else ""


def recover(job: Job) -> None:
    """Complete the list of submitted jobs from Slurm's list if the submitting process was killed."""
    if not (job.has("submitted") or job.has("done") or job.is_supervised()):
        adopt_lost_jobs(job, read_request(job).get("files", []))


def adopt_lost_jobs(job: Job, files: list[Row]) -> None:
    """Record jobs for this run's folder that Slurm lists but the run's own list lacks, because a submission was interrupted."""
    submitted = {entry["id"] for entry in list_submitted_jobs(job)}
    for queued in list_queued_jobs(job):
        if queued["job"] in submitted:
            continue
        file = next((file for file in files if file["job_name"] == queued["name"]), None)
        if file is not None:
            remember(job, queued["job"], file)


def make_rows(job: Job) -> list[Row]:
    """Return one row for each submitted job, or for each task of an array, before Slurm has been asked about it."""
    rows: list[Row] = []
    for submitted in list_submitted_jobs(job):
        tasks = submitted["numbers"] or range(submitted["tasks"])
        for name in [f"{submitted['id']}_{task}" for task in tasks] or [submitted["id"]]:
            row = {"row": len(rows), "job": name, "file": submitted["file"], "state": "SUBMITTED"}
            rows.append(dict(row, asked=bool(submitted.get("asked")), restarts=0, code=None))
    return rows


def list_later_jobs(job: Job) -> list[Row]:
    """Return the number, name and state of each job that this run's own jobs submitted and that has not ended."""
    submitted = {entry["id"] for entry in list_submitted_jobs(job)}
    return [queued for queued in list_queued_jobs(job, with_ended=False) if queued["job"] not in submitted][:MAX_LATER_JOBS]


def list_queued_jobs(job: Job, *, with_ended: bool = True) -> list[Row]:
    """Return Slurm's jobs for this run's folder and the folders below it, and the job array that the run is a task of.

    `with_ended`: also return jobs that have ended.
    """
    root, array_folder = os.path.join(os.path.realpath(job.folder), ""), find_array_folder(job)
    queued: dict[str, Row] = {}
    for line in commands.ask("squeue", "-h", "-a", "-t", "all", "-u", commands.user_name(), "-o", "%F|%T|%j|%Z").splitlines():
        number, _, remainder = line.strip().partition("|")
        state, _, remainder = remainder.partition("|")
        name, _, folder = remainder.rpartition("|")  # a name may contain anything
        folder = os.path.realpath(folder)
        is_own = folder == array_folder or os.path.join(folder, "").startswith(root)
        if number.isdigit() and is_own and (with_ended or words.phase(state) != words.ENDED):
            queued.setdefault(number, {"job": number, "name": name, "state": state})
    return [queued[number] for number in sorted(queued, key=int)]
