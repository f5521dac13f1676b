"""TCP ports for tests: each goes to only one test process on this computer, from a range that the kernel never assigns.

A port that is asked of the kernel, closed, and opened again by a server a second later may be anybody's by then: every
connection of every other test takes one. These are kept by a lock until the process that asked for them ends.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import random
import socket
import tempfile
from pathlib import Path

# Above those of Slurm's daemons and of ranks under Slurm, below those that the kernel gives to whoever asks for any.
_RANGE = range(30_000, 32_700)


def take_port() -> int:
    """Return a port that nobody listens on, and that no other test gets. Raises RuntimeError if there is none."""
    return take_ports(1)[0]


def take_ports(count: int) -> range:
    """`count` consecutive ports."""
    starts = list(_RANGE[:: max(count, 1)])
    random.shuffle(starts)
    for start in starts:
        ports = range(start, start + count)
        locks = [lock for port in ports if (lock := _lock(port)) is not None]
        if len(locks) == count and all(map(_is_free, ports)):
            return ports  # locked for as long as this process lives
        for lock in locks:
            os.close(lock)
    raise RuntimeError(f"every port from {_RANGE.start} to {_RANGE.stop - 1} is taken")


def _lock(port: int) -> int | None:
    folder = Path(tempfile.gettempdir()) / f"gpucourse-tests-ports-{getpass.getuser()}"
    folder.mkdir(exist_ok=True)
    file = os.open(folder / str(port), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # old connections do not matter
        try:
            trial.bind(("", port))
        except OSError:
            return False
        return True
