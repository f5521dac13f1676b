"""The command `init`: the workspace that it creates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Answer


def test_init_creates_the_workspace_of_the_variable_without_a_home(
    type_line: Callable[..., Answer], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/no/such/home")
    monkeypatch.chdir("/")
    assert type_line("init").code == 0
    assert (workspace / ".gpucourse").is_dir()
    assert not Path("/.gpucourse").exists()
    assert not Path("/gpucourse.yaml").exists()


def test_next_of_init_enters_the_new_workspace(
    type_line: Callable[..., Answer], workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine"
    assert f"Next: export GPUCOURSE_WORKSPACE={mine} && gpucourse " in type_line("init", str(mine)).err
    assert "Next: gpucourse " in type_line("init").err


def test_init_refuses_two_folders(type_line: Callable[..., Answer], workspace: Path) -> None:
    answer = type_line("init", "mine", "--workspace", str(workspace))
    assert answer.code == 2
    assert "init accepts one folder" in answer.err
    assert not workspace.exists()


def test_init_of_a_file_says_that_it_is_a_file(type_line: Callable[..., Answer]) -> None:
    answer = type_line("init", "/dev/null")
    assert answer.code == 2
    assert "/dev/null is a file, not a workspace folder" in answer.err
