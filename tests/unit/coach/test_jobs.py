"""A run under Slurm that nobody saw end: by Slurm's word for its jobs, never by the node that was asked."""

from __future__ import annotations

from dataclasses import replace

from gpucourse.coach import jobs
from gpucourse.model.slurm import JobRow
from gpucourse.remote.agent.slurm.words import SIGNALLED


def row(number: int, state: str, node: str = "") -> JobRow:
    return JobRow(row=number, job=str(number), file="job", state=state, node=node)


def test_failed_node_is_that_of_the_job_and_not_the_head() -> None:
    diagnoses = jobs.diagnose_jobs([row(7, "COMPLETED", "node1"), row(8, "NODE_FAIL", "node2")], exercise="2.1", lab="2")
    assert [(diagnosis.symptom, diagnosis.nodes) for diagnosis in diagnoses] == [("node-lost", ["node2"])]
    assert diagnoses[0].title == "node2 failed under job 8"
    assert "gpucourse deploy 2" in diagnoses[0].next


def test_job_that_slurm_does_not_know_any_more_is_lost() -> None:
    diagnoses = jobs.diagnose_jobs([row(7, "FORGOTTEN", "node1"), row(8, "FORGOTTEN")], exercise="2.1", lab="2")
    assert [diagnosis.symptom for diagnosis in diagnoses] == ["job-lost"]
    assert diagnoses[0].title == "Slurm no longer has a record of jobs 7, 8"
    assert "slurmctld was killed" in diagnoses[0].why
    assert "gpucourse run 2.1" in diagnoses[0].next


def test_jobs_that_ended_otherwise_have_no_diagnosis() -> None:
    assert jobs.diagnose_jobs([row(7, "COMPLETED"), row(8, "FAILED")], exercise="2.1", lab="2") == []


def test_job_that_a_signal_ended_is_named_unless_another_failed() -> None:
    """Another job that failed by itself has its own diagnosis, in its log."""
    signalled = replace(row(7, "FAILED", "node1"), reason=SIGNALLED)
    (diagnosis,) = jobs.diagnose_jobs([signalled, row(8, "COMPLETED")], exercise="2.1", lab="2")
    assert diagnosis.title == "A signal ended job 7"
    assert "time limit" in diagnosis.why
    assert jobs.diagnose_jobs([signalled, row(8, "FAILED")], exercise="2.1", lab="2") == []
    assert jobs.SIGNALLED == SIGNALLED
