"""What tests of the nodes' agent share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.remote.agent.slurm import commands
from tests.unit.remote.scripted import Answer, Scripted


@pytest.fixture
def script_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Scripted]:
    """Return a function that scripts the answers of Slurm's commands, for runs in the test's own folder."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def make(kind: type[Scripted] = Scripted, **answers: list[Answer] | Answer) -> Scripted:
        program = kind(**answers)
        monkeypatch.setattr(commands, "ask", program)
        return program

    return make
