"""The parts of the system that tests use: what the set-up provides has to be there, anything else may be missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.openssh import explain
from tests.parts import lack, needs_module
from tests.waiting import STUCK_S

SETUP = Path(__file__).parents[1] / "system-parts.sh"
NO_FOLDER = "Missing privilege separation directory: /run/sshd\r\n"


def set_up(folder: Path, user: int) -> tuple[list[str], list[str]]:
    """The set-up script in a machine where every tool is there: the folders that it makes, and the parts that it notes."""
    programs, made = folder / "bin", folder / "made"
    programs.mkdir()
    made.touch()
    tools = ("sshd", "ssh", "rsync", "shellcheck", "slurmctld", "slurmd", "sbatch", "munged", "ip", "newuidmap")
    for name, body in {"id": f"echo {user}", "mkdir": f'echo "$@" >>{made}', **dict.fromkeys(tools, "")}.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    script = shutil.copy(SETUP, folder)
    subprocess.run(["sh", script], env={"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}, check=True, timeout=STUCK_S)
    return made.read_text().split(), (folder / ".parts").read_text().split()


@pytest.mark.skipif(not Path("/run").is_dir(), reason="sshd needs the folder /run/sshd on Linux only")
def test_the_set_up_makes_the_folder_that_an_sshd_of_root_needs(tmp_path: Path) -> None:
    made, parts = set_up(tmp_path, user=0)
    assert made[-1:] == ["/run/sshd"]
    assert "/run/sshd" in parts


def test_the_set_up_makes_no_folder_for_a_plain_user(tmp_path: Path) -> None:
    made, parts = set_up(tmp_path, user=1000)
    assert made == []
    assert "/run/sshd" not in parts


def test_a_missing_part_fails_where_the_set_up_provided_it(tmp_path: Path) -> None:
    provided = tmp_path / ".parts"
    with pytest.raises(pytest.skip.Exception, match="rsync is not there"):
        lack("rsync", installed=provided)
    provided.write_text("ssh\n/run/sshd\n")
    with pytest.raises(pytest.skip.Exception, match="rsync is not there"):
        lack("rsync", installed=provided)
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception), match="though the set-up provided it") as ended:
        explain(255, NO_FOLDER, installed=provided)
    assert ended.type is pytest.fail.Exception, "a skip here would hide the test that has to say so"


def test_a_missing_module_fails_where_the_set_up_provided_it(tmp_path: Path) -> None:
    provided = tmp_path / ".parts"
    assert needs_module("no_such_module", installed=provided).args == (True,)
    assert needs_module("json", installed=provided).args == (False,)
    provided.write_text("torch\nno_such_module\n")
    assert needs_module("no_such_module", installed=provided).args == (False,), "it fails by itself, without a skip"
    assert {"torch", "transformers", "psutil"} <= set(set_up(tmp_path, user=1000)[1])


def test_an_sshd_that_does_not_start_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="/run/sshd is not there"):
        explain(255, NO_FOLDER, installed=tmp_path / ".parts")
    with pytest.raises(AssertionError, match="code 255: node0/sshd_config: line 3: Bad configuration option"):
        explain(255, "node0/sshd_config: line 3: Bad configuration option: Foo", installed=tmp_path / ".parts")
