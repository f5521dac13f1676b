"""Read files that another person or program named or wrote: only regular files of limited size, inside their folder, never
through a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gpucourse.outside.names import OutsideError, printable, relative_name
from gpucourse.units import format_bytes

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def file_inside(root: Path, name: str) -> Path:
    """Return the path of the regular file `name` below `root`.

    Raises OutsideError if there is no such file, if it is not a regular file, or if the name leads through a link or out of
    `root`.
    """
    parts = relative_name(name).split("/")
    path = root
    for place, part in enumerate(parts):
        path /= part
        try:
            mode = path.lstat().st_mode
        except OSError as error:
            raise OutsideError(f"there is no file {printable(name, 80)}: {error.strerror}") from None
        if not (stat.S_ISDIR(mode) if place < len(parts) - 1 else stat.S_ISREG(mode)):
            raise OutsideError(f"{printable(name, 80)} is {_kind(mode)}, not a plain file")
    return path


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file of at most `max_bytes`. Never wait, not even for a pipe without a writer.

    Raises OutsideError for a link, a device, a pipe, a folder or a larger file. FileNotFoundError and other disk errors are
    raised unchanged.
    """
    with _open_plain(path) as file:
        if os.fstat(file.fileno()).st_size > max_bytes:
            raise OutsideError(f"{path.name} is larger than {format_bytes(max_bytes)}")
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:  # it has grown in the meantime
        raise OutsideError(f"{path.name} is larger than {format_bytes(max_bytes)}")
    return data


def read_named(path: Path, max_bytes: int) -> bytes:
    """Read a file as `read_bounded` does, but follow a link. A person has named this file, or written it into a course."""
    return read_bounded(Path(os.path.realpath(path)), max_bytes)


def read_ends(path: Path, first: int, last: int) -> tuple[bytes, bytes, int]:
    """Return the first `first` bytes and the last `last` bytes of a regular file of any size, and its size.

    If the file is no larger than both parts together, the first part is the whole file and the last part is empty. Raises the
    errors of `read_bounded`, except for the one about the size.
    """
    with _open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= first + last:
            return file.read(first + last), b"", size
        begin = file.read(first)
        file.seek(size - last)
        return begin, file.read(last), size


@contextmanager
def _open_plain(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file for reading."""
    try:
        handle = os.open(path, _READ)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise OutsideError(f"{path.name} is a link, a socket or a device, not a plain file") from None
        raise
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise OutsideError(f"{path.name} is {_kind(info.st_mode)}, not a plain file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a plain file" if stat.S_ISREG(mode) else "a device, a pipe or a socket"
