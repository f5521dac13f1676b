"""Writing files whole: aside, flushed, renamed; a full disk or a forbidden folder becomes an error that says what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gpucourse.errors import StorageError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}
_IN_THE_WAY = {errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG}


def storage_error(error: OSError, path: Path) -> StorageError | None:
    """The sentence for an error of the disk at `path`, or None where it is of another kind."""
    if error.errno in _NO_SPACE:
        return StorageError(
            f"no space left to write {path}",
            hint=f"free some space there (df -h '{path.parent}'), then type the command again",
        )
    if error.errno in _FORBIDDEN:
        return StorageError(
            f"not allowed to write {path}",
            hint="make the folder writable, or choose another workspace with --workspace DIR",
        )
    if error.errno in _IN_THE_WAY:
        return StorageError(
            f"cannot write {path}: {error.strerror}", hint=f"move away what lies at {error.filename or path.parent}"
        )
    return None


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn an error of the disk inside the block into a StorageError about `path`."""
    try:
        yield
    except OSError as error:
        if (known := storage_error(error, path)) is not None:
            raise known from error
        raise


@contextmanager
def writing(path: Path, *, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block has ended well: aside, fsync, rename."""
    import tempfile

    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            Path(aside).replace(path)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise


def write_bytes(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a whole file at once, so that a reader sees the old one or the new one."""
    with writing(path, mode=mode) as file:
        file.write(data)


def write_text(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a whole text file at once, in UTF-8."""
    write_bytes(path, text.encode(), mode=mode)
