"""A Slurm run whose end was not observed: diagnosed from Slurm's states of its jobs, not from the node that reported them."""

from __future__ import annotations

from dataclasses import replace

from gpucourse.coach import jobs
from gpucourse.model.slurm import JobRow
from gpucourse.remote.agent.slurm.words import SIGNALLED


def row(number: int, state: str, node: str = "") -> JobRow:
    return JobRow(row=number, job=str(number), file="job", state=state, node=node)


def test_diagnose_jobs_names_the_node_of_the_job_and_not_the_head() -> None:
    diagnoses = jobs.diagnose_jobs([row(7, "COMPLETED", "node1"), row(8, "NODE_FAIL", "node2")], exercise="2.1", lab="2")
    assert [(diagnosis.symptom, diagnosis.nodes) for diagnosis in diagnoses] == [("node-lost", ["node2"])]
    assert diagnoses[0].title == "node2 failed under job 8"
    assert "gpucourse deploy 2" in diagnoses[0].next


def test_diagnose_jobs_calls_a_job_lost_that_slurm_has_forgotten() -> None:
    diagnoses = jobs.diagnose_jobs([row(7, "FORGOTTEN", "node1"), row(8, "FORGOTTEN")], exercise="2.1", lab="2")
    assert [diagnosis.symptom for diagnosis in diagnoses] == ["job-lost"]
    assert diagnoses[0].title == "Slurm no longer has a record of jobs 7, 8"
    assert "slurmctld was killed" in diagnoses[0].why
    assert "gpucourse run 2.1" in diagnoses[0].next


def test_diagnose_jobs_of_jobs_that_ended_otherwise_is_empty() -> None:
    assert jobs.diagnose_jobs([row(7, "COMPLETED"), row(8, "FAILED")], exercise="2.1", lab="2") == []


def test_diagnose_jobs_names_one_that_a_signal_ended_unless_another_failed() -> None:
    """Another job that failed by itself has its own diagnosis, in its log."""
    signalled = replace(row(7, "FAILED", "node1"), reason=SIGNALLED)
    (diagnosis,) = jobs.diagnose_jobs([signalled, row(8, "COMPLETED")], exercise="2.1", lab="2")
    assert diagnosis.title == "A signal ended job 7"
    assert "time limit" in diagnosis.why
    assert jobs.diagnose_jobs([signalled, row(8, "FAILED")], exercise="2.1", lab="2") == []
    assert jobs.SIGNALLED == SIGNALLED


def test_diagnose_jobs_names_others_who_ended_a_job() -> None:
    cancelled = replace(row(7, "CANCELLED", "node1"), asked=True, cancelled_by="0")
    by_root = replace(row(8, "CANCELLED", "node1"), cancelled_by="0")
    for jobs_of_run, symptom, title in (
        ([cancelled, by_root], "job-cancelled", "job 8 was cancelled by the administrator (root)"),
        ([row(7, "PREEMPTED", "node1")], "job-preempted", "job 7 was preempted"),
        ([row(7, "DEADLINE")], "job-deadline", "job 7 reached its deadline"),
    ):
        (diagnosis,) = jobs.diagnose_jobs(jobs_of_run, exercise="3.2", lab="3")
        assert (diagnosis.symptom, diagnosis.title) == (symptom, title)
        assert "gpucourse run 3.2" in diagnosis.next
    assert jobs.diagnose_jobs([cancelled], exercise="3.2", lab="3") == []
