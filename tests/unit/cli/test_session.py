"""A command works in the session that it is handed: two of them in one process know nothing of each other."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from gpucourse.cli.app import tree
from gpucourse.cli.boundary import run_command
from gpucourse.cli.options import Options
from gpucourse.cli.session import Session
from gpucourse.ui.console import Console


def output_of(command: str, workspace: Path | None) -> str:
    """What a command shows in the session of this workspace, or of the one that it finds."""
    shown = io.StringIO()
    face = Console(json=False, quiet=False, verbose=False, stdout=shown, stderr=io.StringIO(), environ={})
    session = Session(options=Options(workspace=workspace), console=face)
    typer.main.get_command(tree(command)).main([command], standalone_mode=False, obj=session)
    return shown.getvalue()


def test_each_session_has_its_workspace_and_its_screen(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    output_of("init", first)
    assert (first / "gpucourse.yaml").is_file()
    assert not second.exists()
    output_of("init", second)
    assert (second / "gpucourse.yaml").is_file()
    assert "0.1" in output_of("next", first)
    assert "0.1" in output_of("next", second)


@pytest.mark.parametrize("line", ["next", "list", "status", "runs", "destroy --all", "deploy 3 --dry-run", "grade", "doctor"])
@pytest.mark.parametrize("made", [False, True], ids=["no folder", "a folder of others' files"])
def test_command_with_a_misspelt_workspace_is_refused_and_creates_nothing(
    line: str, made: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "typo 2"
    if made:
        root.mkdir()
    assert run_command([*line.split(), "--workspace", str(root)]) == 2
    said = capsys.readouterr().err
    assert f"no such workspace: {root}" in said
    assert f"gpucourse init '{root}'" in said
    assert root.exists() == made
    assert not made or list(root.iterdir()) == []


def test_settings_alone_make_a_folder_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "gpucourse.yaml").write_text("target: local\n")
    assert "0.1" in output_of("next", tmp_path)


@pytest.mark.parametrize(("command", "said"), [("status", "Nothing is deployed."), ("runs", "There are no runs yet.")])
def test_a_command_that_only_looks_makes_no_workspace(
    command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUCOURSE_WORKSPACE", str(tmp_path / "none"))
    assert said in output_of(command, None)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("home", [None, "", "/", "/no/such/home", "/sys"])
def test_init_makes_the_workspace_of_the_variable(home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the learner is, and whatever their home folder is."""
    monkeypatch.delenv("HOME") if home is None else monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("GPUCOURSE_WORKSPACE", str(tmp_path / "named"))
    monkeypatch.chdir("/")
    output_of("init", None)
    assert (tmp_path / "named" / ".gpucourse").is_dir()
    assert not Path("/.gpucourse").exists()
    assert not Path("/gpucourse.yaml").exists()


@pytest.mark.parametrize(("ignored", "code", "said"), [(False, 130, "interrupted\n"), (True, 0, "")])
def test_ctrl_c_before_the_program_is_there_shows_no_traceback(tmp_path: Path, ignored: bool, code: int, said: str) -> None:
    """As it comes in the first moments: while the program is imported. Where it is ignored, as with nohup, it stays so."""
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
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)
