"""A university's cluster in practice: how people log in, what the login node does to their processes, and what is left."""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.parts import need
from tests.system.cli import Learner, list_marked
from tests.system.exercising import needs_torch
from tests.university import COURSE, PASSWORD, University
from tests.waiting import until

pytestmark = [pytest.mark.system, needs_torch]

SETTINGS = {"account": "abc123", "partition": "gpu-short", "cpu_partition": "cpu", "setup": ["module load pytorch/2.13"]}
DOCTOR = ("doctor", "--target", "slurm")
KILLS = 40


@pytest.fixture
def student(university_cluster: University) -> Iterator[Learner]:
    """Yield a learner whose ~/.ssh/config knows the cluster, and who leaves nothing on it."""
    with tempfile.TemporaryDirectory(prefix="uni-", dir="/tmp") as folder:  # a socket in the home has at most 103 bytes
        student = Learner(Path(folder) / "workspace")
        university_cluster.introduce(Path(folder) / "home")
        write_settings(student, login="uni")
        with student.leaves_nothing():
            yield student
    for user in ("stud", "dora"):
        university_cluster.check_nothing_is_left(user)


def write_settings(student: Learner, **settings: object) -> None:
    student.workspace.mkdir(exist_ok=True)
    text = json.dumps({"target": "slurm", "slurm": {**SETTINGS, **settings}})
    (student.workspace / "gpucourse.yaml").write_text(text, encoding="utf-8")


@contextmanager
def opened_by_hand(student: Learner, *options: str) -> Iterator[None]:
    """Open a connection to `uni-2fa` as a person does. SSH_ASKPASS supplies the password that a person would type."""
    home = Path(student.environment["HOME"])
    ask = home / "ask"
    ask.write_text(f"#!/bin/sh\necho '{PASSWORD}'\n")
    ask.chmod(0o700)
    environment = {**os.environ, "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
    ssh = [need("ssh"), "-F", str(home / ".ssh/config")]
    subprocess.run(
        [*ssh, "-fN", *options, "uni-2fa"], env=environment, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        subprocess.run([*ssh, "-O", "exit", *options[1:], "uni-2fa"], check=True, capture_output=True)


def test_second_factor_is_typed_by_a_person_once(student: Learner) -> None:
    home = Path(student.environment["HOME"])
    write_settings(student, login="uni-2fa")
    refusal = " ".join(student.types(*DOCTOR, code=7).err.split())
    assert "asks for something that a program cannot type (keyboard-interactive)" in refusal
    assert f"ssh -fNM -S {home}/.ssh/gpucourse-%C uni-2fa; then type this again" in refusal
    with opened_by_hand(student, "-M", "-S", f"{home}/.ssh/gpucourse-%C"):
        assert "account: abc123" in student.types(*DOCTOR).out
    config = home / ".ssh/config"
    config.write_text(f'Host uni-2fa\n  ControlMaster auto\n  ControlPath "{home}/.ssh/own-%C"\n{config.read_text()}')
    assert "ssh -fN uni-2fa; then type this again" in " ".join(student.types(*DOCTOR, code=7).err.split())
    with opened_by_hand(student):
        assert "account: abc123" in student.types(*DOCTOR).out


@pytest.mark.parametrize("login", ["uni-dora", "uni-jump"])
def test_shells_and_jump_hosts_are_those_of_plain_ssh(student: Learner, login: str) -> None:
    """Log in with tcsh and a noisy start file, and through another account's login by ProxyJump."""
    config = Path(student.environment["HOME"]) / ".ssh/config"
    config.write_text(f"Host uni-jump\n  HostName login1\n  User stud\n  ProxyJump uni-dora\n{config.read_text()}")
    keys = config.with_name("known_hosts")
    with keys.open("a") as stream:
        stream.write(f"login1 {' '.join(keys.read_text().split()[1:3])}\n")
    write_settings(student, login=login)
    assert "account: abc123" in student.types(*DOCTOR).out


@pytest.mark.slow
def test_login_node_itself_needs_no_login(university_cluster: University) -> None:
    """Use the course on the login node itself. Nothing is computed there."""
    options = "--account abc123 --slurm 'setup=module load pytorch/2.13'"
    steps = f"deploy 3 --target slurm {options}", "run 3.1 --no-predict", "ssh 3 -- echo in", "destroy 3 --yes"
    outputs = [university_cluster.inside("login1", f"{COURSE} {step}", user="stud") for step in steps]
    assert "is ready" in outputs[0]
    assert "✓ passed" in outputs[1]
    assert outputs[2].endswith("in\n")
    university_cluster.inside("login1", "rm -rf ~/work ~/.config ~/.local ~/.cache", user="stud")
    university_cluster.check_nothing_is_left()


@pytest.mark.slow
def test_run_survives_a_login_node_that_kills_and_a_client_that_dies(student: Learner, university_cluster: University) -> None:
    """Kill either all processes of the learner on the login node or the command here, forty times, at random moments."""
    student.types("deploy", "3")
    script = student.workspace / "own.py"
    lines = "import os, time\nfor line in range(900):\n    print('line', line, flush=True)\n    time.sleep(0.1)\n"
    script.write_text(lines + "open(os.environ['GPUCOURSE_OUT'] + '/end', 'w').write('whole')\n")
    student.types("run", "--launcher", "python", "--nodes", "1", "--script", str(script), "--detach")
    client = student.begins("logs", "latest", "--follow")
    for _ in range(KILLS):
        time.sleep(random.uniform(0.2, 2.0))  # a random moment
        if random.random() < 0.5:
            university_cluster.inside("login1", "pkill -KILL -u stud", code=None)
        else:
            client.kill()
            client.communicate()
            client = student.begins("logs", "latest", "--follow")
    client.kill()
    client.communicate()
    with tempfile.TemporaryDirectory(prefix="uni-", dir="/tmp") as place:
        client = student.begins("logs", "latest", "--follow", TMPDIR=place)
        until(lambda: [path.is_socket() for path in Path(place).iterdir()] == [True], "an open connection and no other file")
        client.kill()
        client.communicate()
        until(lambda: not list(Path(place).iterdir()), "the end of the connection, without a file")
    student.types("logs", "latest", "--follow")
    record = student.newest_run()
    assert (record["state"], len(record["slurm"]["jobs"])) == ("succeeded", 1)
    (log,) = student.run_folder().glob("logs/*rank0*.log")
    assert [line for line in log.read_text().splitlines() if line.startswith("line")] == [f"line {n}" for n in range(900)]
    assert [path.read_text() for path in student.run_folder().rglob("end")] == ["whole"]
    home = Path(student.environment["HOME"])
    until(lambda: not list_marked(b"HOME=" + str(home).encode()), "the end of every ssh command")
