"""The process of one mock account, as a test starts and ends it.

To import moto takes two seconds of a processor. One process does it once and is forked for every account: the fork server of
the standard library, which ends with whoever runs the tests.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LOG = "server.log"
ENDING_S = 60.0
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["tests.mock_aws.server", "tests.mock_aws.warm"])


class AccountProcess:
    """A running account at `port`. It ends when this object is ended, and when the process that holds this object ends."""

    def __init__(self, folder: Path, behind: str) -> None:
        """Start it. Raises RuntimeError with the end of its log if it does not get that far."""
        self._line, there = _FORKING.Pipe()
        self._process = _FORKING.Process(target=_serve, args=(folder, behind, there), daemon=True)
        self._process.start()
        there.close()
        try:
            self.port = int(self._line.recv())
        except EOFError:
            self.end()
            raise RuntimeError((folder / LOG).read_text(encoding="utf-8", errors="replace")[-4000:]) from None

    def end(self) -> None:
        """End it, by force where it has not done so by itself within a minute."""
        self._line.close()
        self._process.join(ENDING_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _serve(folder: Path, behind: str, line: Connection) -> None:
    """What the fork does: a session, a folder and a log of its own, then the server."""
    os.setsid()
    os.chdir(ROOT)
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)

    from tests.mock_aws.server import main

    main(folder, behind, line)
