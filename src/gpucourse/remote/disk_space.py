"""The free space on the disk of this computer, which the outputs of all nodes fill at the same time."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpucourse.errors import StorageError
from gpucourse.units import format_bytes

_RESERVE = 256 << 20
"""What stays free on the disk here, for records, pictures and other programs."""


class DiskSpace:
    """What is free on one disk, less what other threads are about to write there."""

    def __init__(self) -> None:
        self._lock, self._promised = threading.Lock(), 0

    @contextmanager
    def keep_free(self, folder: Path, size: int) -> Iterator[None]:
        """Keeps so many bytes free for the block. Raises StorageError where they would leave less than the reserve."""
        with self._lock:
            free = shutil.disk_usage(folder).free
            if free - self._promised - size < _RESERVE:
                raise StorageError(
                    f"{folder}: {format_bytes(size)} more would leave less than {format_bytes(_RESERVE)} free on its disk, "
                    f"which has {format_bytes(free)}",
                    hint="free some space; gpucourse logs RUN then collects the rest",
                )
            self._promised += size
        try:
            yield
        finally:
            with self._lock:
                self._promised -= size
