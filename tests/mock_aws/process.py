"""The process of one mock account, as a test starts and ends it.

To import moto takes two seconds of a processor. One process does it once and is forked for every account of every test.
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
    """A running account at `port`. It ends when this object is ended, and when the process that holds this object ends."""

    def __init__(self, folder: Path, *, computers: bool) -> None:
        """Start it. Raises RuntimeError with the end of its log if it does not get that far."""
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
        """End it, by force where it has not done so by itself within a minute."""
        self._line.close()
        try:
            self._fork.communicate(ENDING_S)
        except subprocess.TimeoutExpired:
            self._fork.kill()
            self._fork.communicate()
