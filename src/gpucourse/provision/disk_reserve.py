"""A reserve on the disk while Terraform changes things: a state that cannot be written is lost, and with it what was built.

A ballast file is held while Terraform works. If the disk still runs full (a node that prints without end is
enough), the ballast is dropped, so that the state can be written, and Terraform is asked to stop.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpucourse.errors import StorageError
from gpucourse.storage import storing

BALLAST = 2 << 20  # bytes: the state of 64 nodes and its backup take a tenth of it
SCARCE = 1 << 20  # bytes: the disk counts as full below this, besides the ballast


class DiskReserve:
    """Watches the disk under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ballast = folder / ".disk_reserve"
        self.ran_out = False

    def check(self) -> bool:
        """Whether the disk has just run full; then the ballast is gone, and the answer is no from now on."""
        if self.ran_out or _free(self.folder) >= SCARCE:
            return False
        self.ran_out = True
        self.ballast.unlink(missing_ok=True)
        return True

    def error(self, log: Path | None = None) -> StorageError:
        """What to tell the user."""
        return StorageError(
            f"no space left in {self.folder}" + (": Terraform was stopped, and what it had built is recorded" if log else ""),
            hint=f"free some space there (df -h '{self.folder}'), then type the command again",
            log=log,
        )


@contextmanager
def hold_reserve(folder: Path) -> Iterator[DiskReserve]:
    """Hold the ballast for the block. Raises StorageError, before anything is done, if too little is free."""
    reserve = DiskReserve(folder)
    try:
        with storing(folder):
            reserve.ballast.write_bytes(_noise())
        if reserve.check():
            raise reserve.error()
        yield reserve
    finally:
        reserve.ballast.unlink(missing_ok=True)


@functools.cache
def _noise() -> bytes:
    """Zeros would take no space on a disk that compresses."""
    return os.urandom(BALLAST)


def _free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_frsize * (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail)
