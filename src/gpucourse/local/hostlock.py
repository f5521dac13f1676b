"""The lock that the host holds while it lives. A driver takes it, starts the host, and hands the lock over with the file."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from gpucourse.local.layout import LOCK

_POLL_S = 0.02


def take(folder: Path, *, wait_s: float = 0.0) -> int | None:
    """The open file that holds the lock of `folder`; None where another process has held it for `wait_s`. Closing the file (in
    every process that has it) gives the lock back."""
    deadline = time.monotonic() + wait_s
    while True:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _locked(handle, fcntl.LOCK_EX):
            if same_file(handle, folder / LOCK):
                return handle
        elif time.monotonic() >= deadline:
            os.close(handle)
            return None
        else:
            time.sleep(_POLL_S)
        os.close(handle)


def is_held(folder: Path) -> bool:
    """Whether a host lives in this folder."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _locked(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def same_file(handle: int, path: Path) -> bool:
    """Whether the open file is still the one of that name: another process may have removed it meanwhile."""
    try:
        there = path.stat()
    except OSError:
        return False
    here = os.fstat(handle)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _locked(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
