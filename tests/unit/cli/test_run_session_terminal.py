from __future__ import annotations

import io
import sys

import pytest

from gpucourse.cli.run_session import require_terminal
from gpucourse.errors import UsageError
from tests.learning import Terminal


def test_require_terminal_without_a_terminal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with pytest.raises(UsageError, match="there is none here") as error:
        require_terminal("7.2")
    assert error.value.hint.startswith("type gpucourse run 7.2 in a terminal")
