"""The activity of a run's ranks, seen from outside."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.look import list_activities


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="without /proc no activity is seen")
def test_list_activities_names_waiting_and_stopped_ranks(job: Job) -> None:
    assert list_activities(job) == {}
    ranks = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    try:
        for rank, process in enumerate(ranks):
            job.write(f"ranks/{rank}.pid", {"rank": rank, "pid": process.pid})
        job.write("ranks/2.json", {"code": 0})
        os.kill(ranks[1].pid, signal.SIGSTOP)
        os.waitpid(ranks[1].pid, os.WUNTRACED)
        assert list_activities(job) == {"0": "waiting", "1": "stopped"}, "the third has ended"
    finally:
        for process in ranks:
            process.kill()
            process.wait()
