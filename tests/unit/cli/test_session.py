"""A command uses only the session that it receives: two sessions in one process do not affect each other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Answer


@pytest.mark.parametrize("line", ["next", "status", "destroy --all", "deploy 3 --dry-run"])
@pytest.mark.parametrize("has_folder", [False, True], ids=["no folder", "a folder of others' files"])
def test_session_refuses_a_misspelt_workspace_and_creates_nothing(
    type_line: Callable[..., Answer], line: str, has_folder: bool, tmp_path: Path
) -> None:
    root = tmp_path / "typo 2"
    if has_folder:
        root.mkdir()
    answer = type_line(*line.split(), "--workspace", str(root))
    assert answer.code == 2
    assert f"no such workspace: {root}" in answer.err
    assert f"gpucourse init '{root}'" in answer.err
    assert root.exists() == has_folder
    assert not has_folder or list(root.iterdir()) == []


LOOKS = {
    "status": "Nothing is deployed.",
    "runs": "There are no runs yet.",
    "list": "eBPF tracing",
    "next": "0.1",
    "doctor": "workspace",
    "show 3": "Parallel computing",
    "show 3.2": "How to run it",
    "show 3.2 --solution": "gpucourse try 3.2",
    "show 3.2 --run latest": "3.2 has no run yet",
    "runs 3.2": "3.2 has no run yet",
    "logs 3.2": "3.2 has no run yet",
    "compare 3.2": "3.2 has no run yet",
    "check 3.2": "gpucourse run 3.2",
    "cancel": "no run is under way",
    "ssh 3": "gpucourse deploy 3",
    "grade": "points",
    "check --all": "there is no workspace in",
    "destroy --all": "there is no workspace in",
    "destroy 3": "there is no workspace in",
    "leaks": "there is no workspace in",
    "report": "there is no workspace in",
    "report --of course": "there is no workspace in",
    "extend 3 1h": "module 3 has no lab on AWS",
}


@pytest.mark.parametrize(("line", "words"), LOOKS.items())
def test_session_that_only_reads_creates_no_workspace(
    type_line: Callable[..., Answer], workspace: Path, line: str, words: str
) -> None:
    answer = type_line(*line.split())
    assert words in answer.out + answer.err
    assert not workspace.exists()


@pytest.mark.parametrize(("ignored", "code", "message"), [(False, 130, "interrupted\n"), (True, 0, "")])
def test_session_ended_by_ctrl_c_during_the_imports_shows_no_traceback(
    tmp_path: Path, ignored: bool, code: int, message: str
) -> None:
    """Ctrl-C may arrive while the program is imported. If the signal is ignored, as with nohup, it stays ignored."""
    program = f"""
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN) if {ignored} else None

class Here:
    def find_spec(self, name, *_places):
        if name == "gpucourse.cli.boundary":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Here())
sys.argv[1:] = ["status"]
runpy.run_module("gpucourse", run_name="__main__")
"""
    environ = {**os.environ, "GPUCOURSE_WORKSPACE": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (code, message)
