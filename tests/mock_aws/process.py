"""The process of one mock account, as a test starts and ends it.

To import moto takes two seconds of a processor. One process does it once and is forked for every account of every test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from tests.forks import Fork

ROOT = Path(__file__).parent.parent.parent
LOG = "server.log"
ENDING_S = 60.0
PROGRAM = "from tests.mock_aws.process import serve\nserve({folder!r}, computers={computers!r})"


class AccountProcess:
    """A running account at `port`. It ends when this object is ended, and when the process that holds this object ends."""

    def __init__(self, folder: Path, *, computers: bool) -> None:
        """Start it. Raises RuntimeError with the end of its log if it does not get that far."""
        self._line, there = Pipe()
        words = [sys.executable, "-u", "-c", PROGRAM.format(folder=str(folder), computers=computers)]
        with there:
            self._fork = Fork(words, ROOT, os.environ, library="moto", streams=[there.fileno()])
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


def serve(folder: str, *, computers: bool) -> None:
    """What the fork does: a session and a log of its own, then the server, whose line came as its standard input."""
    os.setsid()
    line = Connection(os.dup(0))
    nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(Path(folder) / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream, file in enumerate((nothing, log, log)):
        os.dup2(file, stream)
    for file in (nothing, log):
        os.close(file)

    from tests.mock_aws.server import main

    main(Path(folder), line, computers=computers)
