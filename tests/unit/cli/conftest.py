"""Commands that are typed in this process, in a separate workspace."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from gpucourse.cli.boundary import run_command


class Answer(NamedTuple):
    """The result of a command: its exit code, and its two output streams with one space between words."""

    code: int
    out: str
    err: str


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a workspace that does not exist yet, in the environment of a learner."""
    for name in [name for name in os.environ if name.startswith(("GPUCOURSE", "AWS", "XDG"))]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GPUCOURSE_WORKSPACE", str(tmp_path / "workspace"))
    return tmp_path / "workspace"


@pytest.fixture
def type_line(workspace: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Return a function that runs a command line in this process."""

    def type_it(*words: str) -> Answer:
        capfd.readouterr()
        code = run_command(words)
        out, err = capfd.readouterr()
        return Answer(code, " ".join(out.split()), " ".join(err.split()))

    return type_it
