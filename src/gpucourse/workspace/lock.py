"""Locks that die with their process: one a stack, one a run. The holder's name stands in the file for whoever waits."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpucourse.errors import StackBusy
from gpucourse.outside.documents import parse_json
from gpucourse.outside.files import read_bounded
from gpucourse.outside.names import printable
from gpucourse.workspace.files import storing

_LONGEST_SIGN = 4096


@contextmanager
def locked(
    path: Path, what: str, *, wait_s: float = 120.0, on_wait: Callable[[str], None] = lambda _holder: None
) -> Iterator[None]:
    """Hold the lock for the block. Where another holds it: tell `on_wait` once who, wait, and after `wait_s` raise
    StackBusy."""
    with _opened(path) as file:
        deadline, told = time.monotonic() + wait_s, False
        while not _take(file):
            holder = _holder(path)
            if time.monotonic() >= deadline:
                raise StackBusy(f"{holder} is still at work here", hint="wait for it to end, then type the command again")
            if not told:
                on_wait(holder)
                told = True
            time.sleep(0.05)
        _sign(file, what)
        yield


@contextmanager
def try_locked(path: Path, what: str) -> Iterator[bool]:
    """Hold the lock for the block if nobody else does; yields whether it is held."""
    with _opened(path) as file:
        taken = _take(file)
        if taken:
            _sign(file, what)
        yield taken


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield file
    finally:
        os.close(file)


def _take(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(file: int, what: str) -> None:
    """Leave our name for whoever waits. A courtesy: on a full disk the lock holds without it."""
    with suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"pid": os.getpid(), "what": what}).encode(), 0)


def _holder(path: Path) -> str:
    try:
        holder = parse_json(read_bounded(path, _LONGEST_SIGN))
        return f"'{printable(str(holder['what']), 80)}' (process {holder['pid']:d})"
    except (ValueError, KeyError, TypeError, OSError):
        return "another gpucourse command"
