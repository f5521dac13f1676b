"""The process of one mock account, as a test starts and ends it.

Importing moto takes two seconds of processor time. One process imports it once, and is forked for the account of each test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path

from tests.forks import Fork

ROOT = Path(__file__).parent.parent.parent
LOG = "server.log"
ENDING_S = 60.0
PROGRAM = "from tests.mock_aws.server import main\nmain({folder!r}, computers={computers!r})"


class AccountProcess:
    """A running account at `port`. It ends when this object is ended, or when the process with this object ends."""

    def __init__(self, folder: Path, *, computers: bool) -> None:
        """Start the account. Raises RuntimeError with the end of its log if it does not start."""
        self._line, child_end = Pipe()
        words = [sys.executable, "-u", "-c", PROGRAM.format(folder=str(folder), computers=computers)]
        with child_end:
            self._fork = Fork(words, ROOT, os.environ, library="moto", streams=[child_end.fileno()])
        try:
            self.port = int(self._line.recv())
        except EOFError:
            self.end()
            raise RuntimeError((folder / LOG).read_text(encoding="utf-8", errors="replace")[-4000:]) from None

    def end(self) -> None:
        """End the account. Kill it if it does not end within a minute."""
        self._line.close()
        try:
            self._fork.communicate(ENDING_S)
        except subprocess.TimeoutExpired:
            self._fork.kill()
            self._fork.communicate()
