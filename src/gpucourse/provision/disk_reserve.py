"""Keeping disk space in reserve while Terraform changes things: if the state cannot be written, the record of the lab is lost.

A ballast file takes up space while Terraform works. The disk may still become full, for example if a node prints endlessly.
Then the ballast is removed, so that the state can be written, and Terraform is interrupted.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpucourse.errors import StorageError
from gpucourse.storage import storing

BALLAST = 2 << 20  # bytes: the state of 64 nodes and its backup take a tenth of this
SCARCE = 1 << 20  # bytes: the disk counts as full with less than this free in addition to the ballast


class DiskReserve:
    """Watches the disk under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ballast = folder / ".disk_reserve"
        self.ran_out = False

    def check(self) -> bool:
        """Return whether the disk has just become full. If so, remove the ballast; all later calls return False."""
        if self.ran_out or _free(self.folder) >= SCARCE:
            return False
        self.ran_out = True
        self.ballast.unlink(missing_ok=True)
        return True

    def error(self, log: Path | None = None) -> StorageError:
        """Return the error for the user. `log`: Terraform's log, if Terraform was stopped."""
        return StorageError(
            f"no space left in {self.folder}" + (": Terraform was stopped, and what it had built is recorded" if log else ""),
            hint=f"free some space there (df -h '{self.folder}'), then type the command again",
            log=log,
        )


@contextmanager
def hold_reserve(folder: Path) -> Iterator[DiskReserve]:
    """Keep the ballast on the disk during the block. If too little space is free, raise StorageError before the block."""
    reserve = DiskReserve(folder)
    try:
        with storing(folder):
            reserve.ballast.write_bytes(_make_noise())
        if reserve.check():
            raise reserve.error()
        yield reserve
    finally:
        reserve.ballast.unlink(missing_ok=True)


@functools.cache
def _make_noise() -> bytes:
    """Return random bytes: zeros would take no space on a disk that compresses."""
    return os.urandom(BALLAST)


def _free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_frsize * (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail)
