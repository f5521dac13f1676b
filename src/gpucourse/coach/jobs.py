"""Diagnose Slurm runs whose end was not observed, from the states that Slurm reports for their jobs."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.model.diagnosis import Diagnosis
from gpucourse.model.slurm import JobRow

SIGNALLED = "a signal ended it"
"""The reason that the agent on a node records for a job that a signal ended."""

_FAILED_NODES = ("NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL")


def diagnose_jobs(jobs: Sequence[JobRow], *, exercise: str, lab: str) -> list[Diagnosis]:
    """Diagnose jobs that Slurm lost, and jobs that were ended by the failure of a node or by a signal. Return an empty list if
    there are no such jobs.

    `lab` is the number of the module whose cluster ran the jobs.
    """
    if losses := [job for job in jobs if job.state in _FAILED_NODES]:
        names = " and ".join(_list_nodes(losses)) or "a node"
        return [
            Diagnosis(
                symptom="node-lost",
                title=f"{names} failed under {_list_jobs(losses)}",
                why=f"Slurm says {losses[0].state}: {names} failed while the job ran, and the job may not be requeued.",
                next=f"gpucourse ssh {lab} -- sinfo -R says why; gpucourse deploy {lab} repairs a lab of your own; then run it "
                f"again: gpucourse run {exercise}",
                nodes=_list_nodes(losses),
            )
        ]
    if forgotten_jobs := [job for job in jobs if job.state == "FORGOTTEN"]:
        return [
            Diagnosis(
                symptom="job-lost",
                title=f"Slurm no longer has a record of {_list_jobs(forgotten_jobs)}",
                why="No command saw the job end, and the job did not record its end. If slurmctld was killed in the job's "
                "first seconds, or the whole cluster was restarted, the job is lost. If no command followed the run for some "
                "minutes, Slurm has only forgotten the job, which was killed too abruptly to record its end.",
                next=f"run it again: gpucourse run {exercise}; a cluster with accounting (sacct) remembers its jobs",
                nodes=_list_nodes(forgotten_jobs),
            )
        ]
    if ended := _diagnose_ends(jobs, exercise):
        return ended
    unsuccessful = [job for job in jobs if job.state == "FAILED"]
    if unsuccessful and all(job.reason == SIGNALLED for job in unsuccessful):
        return [
            Diagnosis(
                symptom="rank-exited",
                title=f"A signal ended {_list_jobs(unsuccessful)}",
                why="Slurm sends a signal at the time limit, after scancel, and when a job of higher priority needs the nodes. "
                "No command followed the run, and Slurm has forgotten the job, so the record cannot say which of these it was.",
                next=f"gpucourse run {exercise} --timeout 2h, if it needed more time; a cluster with accounting (sacct) "
                "remembers its jobs",
                nodes=_list_nodes(unsuccessful),
            )
        ]
    return []


def _diagnose_ends(jobs: Sequence[JobRow], exercise: str) -> list[Diagnosis]:
    """Diagnose jobs that Slurm or another user ended while they ran or waited."""
    cancelled = [job for job in jobs if job.state == "CANCELLED" and job.cancelled_by and not job.asked]
    if cancelled:
        person = "the administrator (root)" if cancelled[0].cancelled_by == "0" else f"the user {cancelled[0].cancelled_by}"
        return [
            Diagnosis(
                symptom="job-cancelled",
                title=f"{_list_jobs(cancelled)} was cancelled by {person}",
                why=f"Slurm's accounting says that {person} typed scancel, not you.",
                next="read the cluster's messages (at login, or by mail), or ask the administrator; then "
                f"gpucourse run {exercise}",
                nodes=_list_nodes(cancelled),
            )
        ]
    for state, (symptom, title, why, advice) in _ENDS.items():
        if ended := [job for job in jobs if job.state == state]:
            return [
                Diagnosis(
                    symptom=symptom,
                    title=f"{_list_jobs(ended)} {title}",
                    why=why,
                    next=advice.format(run=f"gpucourse run {exercise}"),
                    nodes=_list_nodes(ended),
                )
            ]
    return []


_ENDS = {
    "PREEMPTED": (
        "job-preempted",
        "was preempted",
        "A job of higher priority needed the nodes, and Slurm ended this one (PREEMPTED). Nothing is wrong with the script.",
        "{run} submits it again; a partition or QoS that is not preempted: --slurm partition=NAME or --slurm qos=NAME",
    ),
    "DEADLINE": (
        "job-deadline",
        "reached its deadline",
        "Slurm ended it (DEADLINE), because it could not end before the deadline of the job or of its partition.",
        "{run} --timeout 10m, with less time than is left until the deadline",
    ),
}


def _list_nodes(jobs: Sequence[JobRow]) -> list[str]:
    return list(dict.fromkeys(job.node for job in jobs if job.node))


def _list_jobs(jobs: Sequence[JobRow]) -> str:
    job_numbers = ", ".join(job.job for job in jobs[:6])
    return f"job{'s' if len(jobs) > 1 else ''} {job_numbers}{' and more' if len(jobs) > 6 else ''}"
