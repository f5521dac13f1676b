"""Locks that are released when their process ends: one for each stack and each run, one for a running Terraform process, one
for the host of simulated nodes.

A lock is an open file that the kernel has locked. A child process that inherits the file also holds the lock. The file contains
the holder's name, for processes that wait.

Drivers of simulated nodes start with only the standard library, so other modules are imported where they are used.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpucourse.errors import StackBusy

_POLL_S = 0.02
_MAX_SIGN = 4096


@contextmanager
def hold_lock(
    path: Path,
    purpose: str = "",
    *,
    wait_s: float = 120.0,
    on_wait: Callable[[str], None] = lambda _holder: None,
    check: Callable[[], None] = lambda: None,
) -> Iterator[int]:
    """Hold the lock during the block, and yield its open file.

    Raises StackBusy if another process still holds the lock after `wait_s` seconds, and StorageError if the file cannot be
    made.

    `purpose`: the holder's name, for processes that wait. It may be empty.
    `on_wait`: a function that is called once, with the other holder's name, before the first wait.
    `check`: a function that is called after each failed attempt. An error that it raises ends the wait.
    """
    deadline, waiting = time.monotonic() + wait_s, False
    while (file := _create_and_take(path)) is None:
        check()
        if time.monotonic() >= deadline:
            raise StackBusy(f"{holder(path)} is still working here", hint="wait for it to end, then type the command again")
        if not waiting:
            on_wait(holder(path))
            waiting = True
        time.sleep(_POLL_S)
    try:
        if purpose:
            sign(file, purpose, os.getpid())
        yield file
    finally:
        os.close(file)


@contextmanager
def try_lock(path: Path, purpose: str) -> Iterator[bool]:
    """Hold the lock during the block if no other process holds it; yield whether it is held."""
    file = _create_and_take(path)
    try:
        if file is not None:
            sign(file, purpose, os.getpid())
        yield file is not None
    finally:
        if file is not None:
            os.close(file)


def take(path: Path, *, wait_s: float = 0.0) -> int | None:
    """Return the open file that holds the lock, or None if another process has held it for `wait_s` seconds. Raises OSError.

    The lock is released when every process that has the file has closed it.
    """
    deadline = time.monotonic() + wait_s
    while (file := _take(path)) is None:
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_S)
    return file


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock right now."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not _flock(file, fcntl.LOCK_SH)
    finally:
        os.close(file)


def is_same_file(file: int, path: Path) -> bool:
    """Return whether the open file still has that name: another process may have removed it in the meantime."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


def sign(file: int, purpose: str, pid: int) -> None:
    """Write a name into a held lock, for processes that wait. Errors are ignored, because the lock works without a name."""
    import json

    text = json.dumps({"pid": pid, "what": purpose}).encode()
    with suppress(OSError):
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, text)  # the position is then at the end: a child whose input is this file reads nothing


def holder(path: Path) -> str:
    """Return a description of the process that signed the lock last."""
    from gpucourse.outside.documents import parse_json
    from gpucourse.outside.files import read_bounded
    from gpucourse.outside.names import printable

    try:
        sign_fields = parse_json(read_bounded(path, _MAX_SIGN))
        return f"'{printable(str(sign_fields['what']), 80)}' (process {sign_fields['pid']:d})"
    except (ValueError, KeyError, TypeError, OSError):
        return "another gpucourse command"


def _create_and_take(path: Path) -> int | None:
    from gpucourse.storage import storing

    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return _take(path, mode=0o644)


def _take(path: Path, *, mode: int = 0o600) -> int | None:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        if not _flock(file, fcntl.LOCK_EX):
            os.close(file)
            return None
        if is_same_file(file, path):
            return file
        os.close(file)  # removed between the two steps: a lock on it would exclude no process


def _flock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
