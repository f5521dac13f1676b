"""A command at a terminal: what it shows, and what a person types into it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from contextlib import suppress

from tests.system.cli import COMMAND, Learner
from tests.waiting import STUCK_S


class Terminal:
    """A command with a terminal of 80 columns for its input and output."""

    def __init__(self, learner: Learner, *words: str, command: tuple[str, ...] = COMMAND) -> None:
        master, slave = pty.openpty()
        self._ours = master
        self.process = subprocess.Popen(
            [*command, *words],
            env=learner.environment | {"TERM": "dumb", "COLUMNS": "80"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.screen = ""

    def shows(self, words: str) -> None:
        """Wait until these words are on the screen."""
        deadline = time.monotonic() + STUCK_S
        while words not in self.screen:
            assert time.monotonic() < deadline, f"{words!r} is not on the screen:\n{self.screen}"
            assert self._reads(), f"it ended before {words!r} was on the screen:\n{self.screen}"

    def types(self, line: str) -> None:
        """Type a line."""
        os.write(self._ours, f"{line}\n".encode())

    def ends(self) -> int:
        """Wait for the end of the command and return its exit code."""
        while self._reads():
            pass
        code = self.process.wait(STUCK_S)
        os.close(self._ours)
        return code

    def _reads(self) -> bool:
        with suppress(OSError):  # the other end has closed
            if select.select([self._ours], [], [], 1.0)[0]:
                data = os.read(self._ours, 1 << 16)
                self.screen += data.decode(errors="replace").replace("\r\n", "\n")
                return bool(data)
            return True
        return False
