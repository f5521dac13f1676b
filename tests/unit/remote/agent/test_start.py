"""Starting a run: once, and never after a cancel."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.remote.agent import start, supervise
from gpucourse.remote.agent.job import Job, JobRefused


def make_spec() -> dict[str, Any]:
    return {"run_id": "r1", "files": [], "secrets": {"TOKEN": "3f9c"}, "collected": []}


def test_start_refuses_a_run_that_was_cancelled_before(job: Job) -> None:
    supervise.cancel(job, 1.0)
    with pytest.raises(JobRefused, match="run r1 was cancelled before it began"):
        start.start(make_spec(), "/agent")
    assert job.state() == "absent"


def test_start_repeated_answers_with_the_state_of_the_run(job: Job) -> None:
    for name in ("job.json", "started", "done"):
        job.write(name, {})
    assert start.start(make_spec(), "/agent") == {"state": "ended", "again": True}
