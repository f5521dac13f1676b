"""Who runs Terraform on a stack: a lock that lives exactly as long as that Terraform, not as long as its starter.

The lock file is handed to Terraform as its standard input. So a gpucourse that was killed leaves the lock with the
Terraform that goes on without it, and the next command can wait for that one to end. Standard input is the one descriptor
that Terraform does not pass on: what a provisioner starts and leaves running does not hold the stack.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gpucourse.errors import StackBusy
from gpucourse.workspace.files import storing

_LOOK_EVERY_S = 0.02


@contextmanager
def claimed(
    lock: Path, *, wait_s: float, on_wait: Callable[[str], None], going_on: Callable[[], bool] = lambda: True
) -> Iterator[IO[str]]:
    """The open lock file, held for the block and by every process that got it as standard input.

    While another holds it: `on_wait` is told once who, and it is waited for `wait_s` seconds, then StackBusy; at once where
    `going_on` says no, then the block is entered without the lock: ask `going_on` there.
    """
    with storing(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("a+", encoding="utf-8")
    with file:
        deadline, told = time.monotonic() + wait_s, False
        while not _taken(file) and going_on():
            if time.monotonic() >= deadline:
                raise StackBusy(
                    f"{holder(lock)} is still at work on this stack",
                    hint="wait for it to end, then type the command again",
                )
            if not told:
                on_wait(holder(lock))
                told = True
            time.sleep(_LOOK_EVERY_S)
        yield file


def is_claimed(lock: Path) -> bool:
    """Whether a Terraform works on this stack right now."""
    try:
        with lock.open(encoding="utf-8") as file:
            return not _taken(file)
    except FileNotFoundError:
        return False


def sign(file: IO[str], command: str, pid: int) -> None:
    """Write into a held lock who holds it, for whoever waits."""
    file.seek(0)
    file.truncate()
    file.write(json.dumps({"pid": pid, "what": f"terraform {command}"}))
    file.flush()


def holder(lock: Path) -> str:
    """Who signed the lock last, in words."""
    try:
        signed = json.loads(lock.read_text(encoding="utf-8"))
        return f"'{signed['what']}' of an earlier command (process {signed['pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "the Terraform of an earlier command"


def _taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
