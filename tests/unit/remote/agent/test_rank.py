"""The lives of a rank on its node: one log for all of them, and a record of how each ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.rank import expand


def live(agent: Path, life: str, script: str) -> int:
    """Run one life of rank 1 and return its exit code."""
    command = [sys.executable, "-I", "-S", str(agent), "rank", "r1", "/bin/sh", "-c", script]
    variables = {**os.environ, "RANK": "1", "TORCHELASTIC_RESTART_COUNT": life}
    return subprocess.run(command, env=variables, check=False).returncode


def test_expand_puts_the_wrapper_in_place_of_the_placeholder() -> None:
    argv = expand(["torchrun", "--no-python", "{rank}", "py", "x{rank}", "{rank} "], "py", "/agent", "r1")
    assert argv == ["torchrun", "--no-python", "py", "-I", "-S", "/agent", "rank", "r1", "py", "x{rank}", "{rank} "]


def test_run_keeps_one_log_of_all_lives(agent: Path, job: Job) -> None:
    job.write("job.json", {"max_restarts": 2})
    assert live(agent, "0", "printf 'step 1\\ncut o'; exit 9") == 9
    assert live(agent, "1", "echo step 1 again; exit 7") == 7
    assert live(agent, "2", "echo done") == 0
    text = Path(job.path("logs", "rank1.log")).read_text()
    assert text == "step 1\ncut o\n--- restart 1 ---\nstep 1 again\n--- restart 2 ---\ndone\n"
    assert [(rank, life, end["code"], end["restart"]) for rank, life, end in job.rank_ends()] == [
        (1, 0, 9, 0), (1, 1, 7, 1), (1, None, 0, 2)
    ]  # fmt: skip
    assert {rank: end["code"] for rank, end in job.ranks().items()} == {1: 0}


@pytest.mark.parametrize("life", ["5", "two"])
def test_run_bounds_the_restart_count_by_the_request(agent: Path, job: Job, life: str) -> None:
    job.write("job.json", {"max_restarts": 0})
    live(agent, life, "echo here")
    assert Path(job.path("logs", "rank1.log")).read_text() == "here\n"
    assert job.ranks()[1]["restart"] == 0


def test_run_notes_the_process_group_of_each_life(agent: Path, job: Job) -> None:
    job.write("job.json", {"max_restarts": 2})
    live(agent, "0", 'printf "0\\n2\\n" >> "$GPUCOURSE_GROUP_FILE"; exit 9')
    live(agent, "1", 'printf "0\\n1\\nx\\n99999999\\n" >> "$GPUCOURSE_GROUP_FILE"')
    assert [end.get("group") for _, _, end in job.rank_ends()] == [2, 1]
    live(agent, "2", "echo no torch here")
    assert "group" not in job.ranks()[1]
