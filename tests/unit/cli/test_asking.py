"""What a person types at a terminal, line by line, also where it is no text."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from gpucourse.cli.asking import ask, somebody_there
from gpucourse.cli.boundary import run_command
from gpucourse.cli.options import Options
from gpucourse.cli.session import Session
from gpucourse.ui.console import Console


class Terminal(io.StringIO):
    """At which somebody presses Ctrl-C."""

    def isatty(self) -> bool:
        return True

    def readline(self, *_: object) -> str:  # type: ignore[override]  # as in TextIOBase, whose parent reads bytes
        raise KeyboardInterrupt


def test_ctrl_c_at_a_question_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUCOURSE_WORKSPACE", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert run_command(["quiz"]) == 130
    assert "answer> \nthe quiz is interrupted; every answer so far is kept\n" in capsys.readouterr().err


def test_lines_are_read_as_they_come_and_a_wrong_byte_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" 45% \r\n\xff\n\nlast"), encoding="utf-8"))
    told = io.StringIO()
    face = Console(json=False, quiet=False, verbose=False, stdout=io.StringIO(), stderr=told, environ={})
    session = Session(options=Options(), console=face)
    assert not somebody_there(session)
    assert [ask(session, f"{number}> ") for number in range(5)] == ["45%", "\udcff", "", "last", None]
    assert "0> " in told.getvalue()
