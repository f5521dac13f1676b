"""If code that only shows, draws or explains something fails, the command continues, and the screen and the log report it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import Interrupted, UsageError
from gpucourse.guard import guard


def test_guard_turns_a_failure_into_a_warning_and_a_line_in_the_log(tmp_path: Path) -> None:
    log, warnings = tmp_path / "folder" / "gpucourse.log", list[str]()
    with guard("draw the pictures", lambda: log, warnings.append):
        raise IndexError("list index\nout of range")
    [line] = log.read_text(encoding="utf-8").splitlines()
    assert "could not draw the pictures: IndexError: list index" in line
    assert "test_guard.py" in line
    [warning] = warnings
    assert warning.startswith("could not draw the pictures: IndexError: list index")
    assert warning.endswith(f"Details: {log}")


def test_guard_shows_the_hint_of_an_error_of_the_program() -> None:
    warnings: list[str] = []
    with guard("draw the pictures", None, warnings.append):
        raise UsageError("there is no such font", hint="install it")
    assert warnings == ["could not draw the pictures: there is no such font; install it"]


def test_guard_goes_on_if_the_log_cannot_be_written() -> None:
    warnings: list[str] = []
    with guard("draw the pictures", lambda: Path("/proc/none/log"), warnings.append):
        raise ValueError("x")
    assert warnings == ["could not draw the pictures: ValueError: x; nothing else is affected"]


@pytest.mark.parametrize("error", [Interrupted("stop"), BrokenPipeError(), KeyboardInterrupt(), UsageError("no")])
def test_guard_lets_an_interrupt_and_excepted_errors_through(error: BaseException) -> None:
    with pytest.raises(type(error)), guard("draw", None, pytest.fail, except_for=(UsageError,)):
        raise error
