from __future__ import annotations

import os
import pty
import sys
import termios

import pytest

from gpucourse.cli.watch import END, drop_keys, read_key


def test_read_key_returns_one_key_and_restores_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    old_settings = termios.tcgetattr(slave)
    with os.fdopen(slave) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert read_key(0.0) == ""
        os.write(master, b"R\x04hhh")
        drop_keys()
        assert read_key(0.0) == "", "what was typed while the program was busy is no key"
        os.write(master, b"R\n\x04\n")
        assert read_key(5.0) == "r"
        assert termios.tcgetattr(terminal) == old_settings
        os.close(master)
        assert read_key(5.0) == END, "the terminal is gone"
