"""The lives of a rank on its node: one log for all of them, and a note of how each ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.remote import jobs
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.rank import expand
from tests.waiting import STUCK_S, until


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    for name, text in json.loads(jobs._bundle()).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("HOME", str(tmp_path))
    job = Job("r1")
    for name in ("logs", "ranks"):
        Path(job.path(name)).mkdir(parents=True)
    job.write("job.json", {"max_restarts": 2})
    return job


def live(agent: Path, life: str, script: str) -> int:
    """One life of rank 1; its exit code."""
    command = [sys.executable, "-I", "-S", str(agent), "rank", "r1", "/bin/sh", "-c", script]
    variables = {**os.environ, "RANK": "1", "TORCHELASTIC_RESTART_COUNT": life}
    return subprocess.run(command, env=variables, check=False).returncode


def test_expand_puts_the_wrapper_in_place_of_the_placeholder() -> None:
    argv = expand(["torchrun", "--no-python", "{rank}", "py", "x{rank}", "{rank} "], "py", "/agent", "r1")
    assert argv == ["torchrun", "--no-python", "py", "-I", "-S", "/agent", "rank", "r1", "py", "x{rank}", "{rank} "]


def test_log_holds_all_lives_of_a_rank(agent: Path, job: Job) -> None:
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
def test_restart_count_is_bounded_by_the_request(agent: Path, job: Job, life: str) -> None:
    job.write("job.json", {"max_restarts": 0})
    live(agent, life, "echo here")
    assert Path(job.path("logs", "rank1.log")).read_text() == "here\n"
    assert job.ranks()[1]["restart"] == 0


def test_size_of_the_process_group_is_that_of_the_last_life(agent: Path, job: Job) -> None:
    live(agent, "0", 'printf "0\\n2\\n" >> "$GPUCOURSE_GROUP_FILE"; exit 9')
    live(agent, "1", 'printf "0\\n1\\nx\\n99999999\\n" >> "$GPUCOURSE_GROUP_FILE"')
    assert [end.get("group") for _, _, end in job.rank_ends()] == [2, 1]
    live(agent, "2", "echo no torch here")
    assert "group" not in job.ranks()[1]


TOLD_AT_ONCE = """
import os, signal, sys, time
sys.path.insert(0, {agent!r})
from gpucourse.remote.agent import rank
from gpucourse.remote.agent.job import Job

me, set_group, tell_group = os.getpid(), os.setpgid, os.killpg

def set_late(*group):
    while os.getpid() != me and not os.path.exists("told"):
        time.sleep(0.01)
    set_group(*group)

def tell(*group):
    try:
        tell_group(*group)
    finally:
        open("told", "w").close()

os.setpgid, os.killpg = set_late, tell
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.kill(me, signal.SIGTERM)  # it comes as soon as the process of the script is there, which is slow to begin
sys.exit(rank.run(Job("r1"), ["/bin/sleep", "600"]))
"""


def test_signal_before_the_script_leads_its_group_is_not_lost(agent: Path, job: Job, tmp_path: Path) -> None:
    command = [sys.executable, "-c", TOLD_AT_ONCE.format(agent=str(agent))]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "RANK": "1"}, timeout=STUCK_S, check=False)
    assert done.returncode == -signal.SIGTERM
    assert job.ranks()[1]["code"] == 128 + signal.SIGTERM


def test_run_has_programs_of_the_system_and_secrets_that_no_file_holds(agent: Path, tmp_path: Path) -> None:
    """Run below a folder with a colon, which separates the folders of PYTHONPATH."""
    home, secret = tmp_path / "my home: 2", "3f9c-not-in-any-file"
    own = shutil.copytree(agent, home / ".gpucourse" / "agent")
    script = (
        "import gpucourse_groups, os\n"
        "seen = os.environ['PATH'], str(len(os.environ['TOKEN'])), os.environ['MINE'], gpucourse_groups.FILE\n"
        "open(os.environ['GPUCOURSE_OUT'] + '/seen', 'w').write('|'.join(seen))\n"
    )
    spec = {
        "run_id": "r2", "exercise": "3.1", "argv": [sys.executable, "-c", script], "env": {"MINE": "1"},
        "secrets": {"TOKEN": secret}, "ranks": [0], "python": sys.executable, "timeout_s": 60, "files": [],
    }  # fmt: skip
    command = [sys.executable, "-I", "-S", str(own), "start"]
    variables = {**os.environ, "HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": "/theirs"}
    done = subprocess.run(command, input=json.dumps(spec).encode(), env=variables, capture_output=True, check=True)
    assert json.loads(done.stdout)["state"] == "running"
    folder = home / ".gpucourse/jobs/r2"
    until((folder / "done").exists, "the run ends")
    path = "/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
    assert (folder / "outputs/seen").read_text() == f"{path}|{len(secret)}|1|GPUCOURSE_GROUP_FILE"
    assert json.loads((folder / "job.json").read_text())["env"]["MINE"] == "1"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
