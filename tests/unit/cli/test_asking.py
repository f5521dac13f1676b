from __future__ import annotations

import io
import sys

import pytest

from gpucourse.cli.asking import ask, can_answer
from gpucourse.cli.session import Options, Session
from gpucourse.ui.console import Console


def test_ask_reads_line_by_line_even_bytes_that_are_not_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" 45% \r\n\xff\n\nlast"), encoding="utf-8"))
    screen = io.StringIO()
    console = Console(json=False, quiet=False, verbose=False, stdout=io.StringIO(), stderr=screen, environ={})
    session = Session(options=Options(), console=console)
    assert not can_answer(session)
    assert [ask(session, f"{number}> ") for number in range(5)] == ["45%", "\udcff", "", "last", None]
    assert "0> " in screen.getvalue()
