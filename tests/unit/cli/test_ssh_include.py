"""The question about the line in the learner's own ~/.ssh/config, which is asked once."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import pytest

from gpucourse.cli.session import Options, Session
from gpucourse.cli.ssh_include import decide, offer_line, remove_line
from gpucourse.ui.console import Console
from tests.learning import Learning, Terminal
from tests.unit.labs.test_ssh_include import OWN, make_config, register_home

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH's client is not installed: make system-deps")


@pytest.fixture
def config(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_config(learning, monkeypatch)


def make_session(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Session, Terminal]:
    """Return a session of a person at a terminal who types this."""
    monkeypatch.setattr(sys, "stdin", Terminal(text))
    terminal = Terminal()
    face = Console(json=False, quiet=False, verbose=False, stdout=terminal, stderr=terminal, environ={"TERM": "dumb"})
    return Session(options=Options(), console=face), terminal


def test_ssh_include_is_offered_once_and_removed_with_the_last_lab(
    learning: Learning, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, screen = make_session("y\n", monkeypatch)
    offer_line(session, "1", ask=True)
    assert "ssh gpucourse-1-node0" in screen.getvalue()
    assert config.read_bytes() != OWN
    remove_line(session)
    assert config.read_bytes() != OWN, "the lab is still there"
    record = learning.context.paths.deployment("01-local")
    record.rename(record.with_suffix(".kept"))
    remove_line(session)
    assert config.read_bytes() == OWN
    record.with_suffix(".kept").rename(record)
    second_session, screen = make_session("n\n", monkeypatch)
    offer_line(second_session, "1", ask=True)
    assert "[y/N]" not in screen.getvalue()
    assert config.read_bytes() != OWN


def test_ssh_include_is_not_offered_in_a_pipe_with_yes_or_after_a_no(
    learning: Learning, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, screen = make_session("y\n", monkeypatch)
    offer_line(session, "1", ask=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    offer_line(session, "1", ask=True)
    assert (screen.getvalue(), learning.context.paths.ssh_include.exists()) == ("", False)
    with monkeypatch.context() as elsewhere:
        register_home(elsewhere, learning.course)
        session, screen = make_session("y\n", monkeypatch)
        offer_line(session, "1", ask=True)
        assert screen.getvalue() == "", "nobody is asked about what cannot be done"
    session, screen = make_session("n\ny\n", monkeypatch)
    offer_line(session, "1", ask=True)
    offer_line(session, "1", ask=True)
    assert screen.getvalue().count("[y/N]") == 1
    assert config.read_bytes() == OWN


def test_decide_includes_the_nodes_or_not(learning: Learning, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, screen = make_session("", monkeypatch)
    decide(session, included=True)
    assert config.read_bytes() != OWN
    decide(session, included=False)
    assert config.read_bytes() == OWN
    decide(session, included=False)
    assert "does not include this workspace's nodes, as before" in " ".join(screen.getvalue().split())
