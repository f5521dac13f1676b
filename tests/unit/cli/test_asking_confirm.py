from __future__ import annotations

import io
import sys

import pytest

from gpucourse.cli.asking import confirm
from gpucourse.cli.session import Options, Session
from gpucourse.errors import UsageError
from gpucourse.ui.console import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def session(err: io.StringIO, *, json: bool = False) -> Session:
    face = Console(json=json, quiet=False, verbose=False, stdout=io.StringIO(), stderr=err, environ={})
    return Session(options=Options(json=json), console=face)


def test_confirm_with_yes_asks_nothing() -> None:
    err = io.StringIO()
    assert confirm(session(err), "Really?", yes=True, command="gpucourse deploy 3")
    assert err.getvalue() == ""


@pytest.mark.parametrize("at_a_terminal", [True, False])
def test_confirm_without_a_terminal_suggests_yes(monkeypatch: pytest.MonkeyPatch, at_a_terminal: bool) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n") if at_a_terminal else io.StringIO("y\n"))
    err = Terminal() if at_a_terminal else io.StringIO()
    with pytest.raises(UsageError) as error:
        confirm(session(err, json=at_a_terminal), "Really?", yes=False, command="gpucourse deploy 3")
    assert error.value.hint == "gpucourse deploy 3 --yes"


@pytest.mark.parametrize(("words", "agreed"), [("y\n", True), ("no\n", False)])
def test_confirm_at_a_terminal_asks_the_person(monkeypatch: pytest.MonkeyPatch, words: str, agreed: bool) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(words))
    assert confirm(session(Terminal()), "Really?", yes=False, command="gpucourse deploy 3") is agreed
