"""Keep the logs of a run on this computer: byte-for-byte copies of the nodes' logs, up to a limit, and never written through a
link.

This module also limits the number of logs, and makes the request for the missing part of a node's logs.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gpucourse.errors import StorageError
from gpucourse.model.node import Node
from gpucourse.remote import answers
from gpucourse.storage import make_folder, storing
from gpucourse.units import format_bytes
from gpucourse.workspace.files import refuse_links
from gpucourse.workspace.paths import RunPaths

LogOwner = tuple[str, int | None]
"""The node and the rank that a log belongs to; a launcher's rank is None."""

MAX_LOGS = 24_576  # enough for an array of 10,000 tasks, all of which may be put back into the queue

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OFFSETS_IN_COMMAND = 1000
"""The maximum number of offsets in a command, which may have 128 KiB at most. More offsets are sent as its input."""

_MAX_TIMES = 16 << 20
"""The maximum number of bytes in a log's list of arrival times. A node that sends its log byte by byte reaches this limit."""


class LogFile:
    """The copy of a node's log at `path`. The file `times` lists when its pieces arrived.

    The node continues at the offset that equals the file's size. When the log reaches `limit` bytes, a sentence about the limit
    is added and later bytes are dropped.

    No file is kept open, because a cluster may have more logs than one process may have open files.
    """

    def __init__(self, node: str, path: Path, times: Path, limit: int | None) -> None:
        self._node, self._path, self._times, self._limit = node, path, times, limit
        with self._open() as handle:
            self.size = os.fstat(handle).st_size

    @property
    def name(self) -> str:
        """Return the file's name without its folder, for messages."""
        return self._path.name

    @property
    def full(self) -> str:
        """Return a sentence for the user if the log has reached its limit; otherwise return an empty string."""
        if self._limit is None or self.size < self._limit:
            return ""
        return f"{self.name} reached its limit of {format_bytes(self._limit)}: later output is not kept"

    def append(self, offset: int, data: bytes) -> bytes:
        """Append a piece that begins at `offset`; return the part that was kept.

        Raises NodeUntrusted if the piece does not begin at the log's end, and StorageError if the disk here is full.
        """
        if self.full:
            return b""
        with self._open() as handle:
            self.size = os.fstat(handle).st_size
            if self.size != offset:
                reason = f"it belongs at {offset}, but the log here ends at {self.size}"
                raise answers.make_untrusted_error(self._node, f"a piece of {self.name}", reason)
            stored = data if self._limit is None else data[: self._limit - offset]
            self._write(handle, stored)
            if self.full:
                self._write(handle, f"\n[gpucourse: {self.full}. The setting: log_limit]\n".encode())
        return stored

    def _write(self, handle: int, data: bytes) -> None:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(handle, remaining) :]
        self.size += len(data)
        if data:
            times = os.open(self._times, _FLAGS, 0o644)
            try:
                if os.fstat(times).st_size < _MAX_TIMES:
                    os.write(times, f"{self.size} {time.time():.3f}\n".encode())
            finally:
                os.close(times)

    @contextmanager
    def _open(self) -> Iterator[int]:
        folder = self._path.parent
        refuse_links(folder, folder.parent)
        with storing(self._path):
            make_folder(folder)
            handle = os.open(self._path, _FLAGS, 0o644)
            try:
                info = os.fstat(handle)
                if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
                    raise StorageError(
                        f"{self._path} is not a plain file of the run",
                        hint=f"see what it is (ls -li '{folder}'), then move it away",
                    )
                yield handle
            finally:
                os.close(handle)


def count_possible_logs(ranks: int, hosts: Collection[str] | None) -> int:
    """Return the largest number of logs that a run under Slurm may have.

    There is one for each rank, one for each host's launcher, and one for the node that sends them. Without `hosts`, each rank
    may be on a different host. Ranks count twice, because Slurm may put a job back into its queue and start it again on other
    nodes.
    """
    return min(2 * ranks + (2 * ranks if hosts is None else len(hosts)) + 1, MAX_LOGS)


def make_question(run_id: str, node: Node, sizes: Mapping[LogOwner, int]) -> tuple[list[str], bytes]:
    """Return the request for the missing part of a node's logs, as the words of the command and its input.

    `sizes`: how many bytes of each log are already here.
    """
    offsets = [
        f"{'' if host == node.name else host}/{'-' if rank is None else rank}={size}" for (host, rank), size in sizes.items()
    ]
    if len(offsets) > _OFFSETS_IN_COMMAND:
        return ["follow", run_id, "-"], "\n".join(offsets).encode()
    return ["follow", run_id, *offsets], b""


def find_logs(node: Node, paths: RunPaths, *, scheduled: bool) -> dict[LogOwner, Path]:
    """Return the logs that are already here: the node's or, for a run under Slurm, those of all nodes."""
    return {owner: path for owner, path in paths.all_logs().items() if scheduled or owner[0] == node.name}
