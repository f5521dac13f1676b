"""The supervisor of a run: the environment of its processes, and the record if it vanished or was cancelled early."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from gpucourse.remote.agent import supervise
from gpucourse.remote.agent.job import Job
from tests.waiting import until


def test_settle_ends_a_run_whose_supervisor_vanished(job: Job) -> None:
    job.write("job.json", {"files": []})
    assert not supervise.settle(job), "it has not begun"
    job.write("started", {})
    assert job.state() == "lost"
    assert supervise.settle(job)
    assert job.state() == "ended"
    exit_record = job.read("exit.json") or {}
    assert (exit_record["code"], exit_record["reason"], exit_record["seconds"]) == (137, "lost", None)
    assert not supervise.settle(job), "it is written down already"


def test_supervise_sets_the_path_and_writes_secrets_to_no_file(agent: Path, tmp_path: Path) -> None:
    """Run below a folder with a colon, which separates the folders in PYTHONPATH."""
    home, secret = tmp_path / "my home: 2", "3f9c-not-in-any-file"
    agent_copy = shutil.copytree(agent, home / ".gpucourse" / "agent")
    script = (
        "import gpucourse_groups, os\n"
        "seen = os.environ['PATH'], str(len(os.environ['TOKEN'])), os.environ['MINE'], gpucourse_groups.FILE\n"
        "open(os.environ['GPUCOURSE_OUT'] + '/seen', 'w').write('|'.join(seen))\n"
    )
    spec = {
        "run_id": "r2", "exercise": "3.1", "argv": [sys.executable, "-c", script], "env": {"MINE": "1"},
        "secrets": {"TOKEN": secret}, "ranks": [0], "python": sys.executable, "timeout_s": 60, "files": [],
    }  # fmt: skip
    command = [sys.executable, "-I", "-S", str(agent_copy), "start"]
    variables = {**os.environ, "HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": "/theirs"}
    result = subprocess.run(command, input=json.dumps(spec).encode(), env=variables, capture_output=True, check=True)
    assert json.loads(result.stdout)["state"] == "running"
    folder = home / ".gpucourse/jobs/r2"
    until((folder / "done").exists, "the run ends")
    path = "/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
    assert (folder / "outputs/seen").read_text() == f"{path}|{len(secret)}|1|GPUCOURSE_GROUP_FILE"
    assert json.loads((folder / "job.json").read_text())["env"]["MINE"] == "1"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
