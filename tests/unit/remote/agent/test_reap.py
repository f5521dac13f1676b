"""Ending the processes of a run. Only naps move the clock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.remote.agent.job import MARK
from gpucourse.remote.agent.reap import below, find_marked
from tests.waiting import until


@pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc")
def test_below_and_find_marked_list_the_processes_of_a_job(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: str(tmp_path)})
    try:
        assert process.pid in below(os.getpid())
        assert process.pid not in below(os.getpid(), spare=process.pid)
        until(lambda: find_marked(str(tmp_path)) == [process.pid], "the mark is seen")
    finally:
        process.kill()
        process.wait()
