"""The folder of a run on a node: its files, and its state."""

from __future__ import annotations

import os

import pytest

from gpucourse.remote.agent.job import Job, JobRefused


@pytest.mark.parametrize("run_id", ["", "..", ".hidden", "a/b", "a\0b"])
def test_job_refuses_what_is_no_run_id(run_id: str) -> None:
    with pytest.raises(JobRefused, match="not a run id"):
        Job(run_id)


def test_state_follows_the_files_of_a_run(job: Job) -> None:
    assert job.state() == "absent"
    job.write("job.json", {})
    assert job.state() == "absent"
    lock = job.lock()
    assert lock is not None
    assert job.lock() is None, "a supervisor holds it"
    assert job.state() == "preparing"
    job.write("started", {})
    job.write("pid", os.getpid())
    assert (job.state(), job.pid("pid")) == ("running", os.getpid())
    os.close(lock)
    assert job.state() == "lost"
    job.write("done", {})
    assert job.state() == "ended"


def test_rank_ends_leaves_out_files_of_other_names(job: Job) -> None:
    for name in ("0.json", "1.0.json", "1.json"):
        job.write(f"ranks/{name}", {"code": 0})
    for name in ("x.json", "2.pid", "3.x.json"):
        job.write(f"ranks/{name}", {"code": 1})
    assert [(rank, life) for rank, life, _ in job.rank_ends()] == [(0, None), (1, 0), (1, None)]
