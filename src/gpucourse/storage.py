"""Write files as a whole: write under a temporary name, flush, then rename. If the disk is full or a folder cannot be written,
the error says what to do.

This module also decides where a user's own files belong: never in `/` itself, and never in a home folder that does not exist.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO

from gpucourse.errors import HomeMissing, StorageError
from gpucourse.units import format_bytes

_RESERVE = 256 << 20
"""The number of bytes to keep free on this computer's disk, for records, pictures and other programs."""

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}
_IN_THE_WAY = {errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG}


def find_home(environ: Mapping[str, str], remedy: str) -> Path:
    """Return the user's home folder: HOME or, if HOME is unset or empty, the account's home folder.

    Raises HomeMissing if the user cannot enter that folder, or if it is `/`. The error's hint begins with `remedy`, the command
    that needs no home folder.
    """
    setting = environ.get("HOME", "")
    home = Path(setting or _find_account_home())
    # Access is checked first: `is_dir` may raise an error for a folder that this user may not enter.
    if home.is_absolute() and os.access(home, os.X_OK) and home.is_dir() and not home.samefile("/"):
        return home
    origin = f"HOME is {setting}" if setting else f"HOME is not set, and the home folder of this account is {home}"
    raise HomeMissing(f"{origin}: your files cannot be kept there", hint=f"{remedy}, or export HOME=/home/you")


def _find_account_home() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user ID without an account, as in containers
        return "/"


def find_login() -> str:
    """Return the user's login name, or the user ID if this ID has no account, as in many containers."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def storage_error(error: OSError, path: Path) -> StorageError | None:
    """Return the StorageError for a disk error at `path`, or None for any other kind of error."""
    if error.errno in _NO_SPACE:
        return StorageError(
            f"no space left to write {path}",
            hint=f"free some space there (df -h '{path.parent}'), then type the command again",
        )
    if error.errno in _FORBIDDEN:
        return StorageError(
            f"not allowed to write {path}",
            hint="make the folder writable, or make another workspace (gpucourse init DIR) and name it with --workspace DIR",
        )
    if error.errno in _IN_THE_WAY:
        return StorageError(
            f"cannot write {path}: {error.strerror}", hint=f"move away what is at {error.filename or path.parent}"
        )
    return None


@contextmanager
def storing(path: Path | str) -> Iterator[None]:
    """Turn a disk error inside the block into a StorageError about `path`."""
    try:
        yield
    except OSError as error:
        if (failure := storage_error(error, Path(path))) is not None:
            raise failure from error
        raise


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents. No other user may write to a folder that it makes. Raises OSError.

    A parent's access list (ACL) may allow other users to write. Such a list overrides the umask, but not an explicit mode, so
    the mode is set.
    """
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o755, exist_ok=True)


@contextmanager
def writing(path: Path, *, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """Yield a binary file with a temporary name. If the block raises no error, sync the file and rename it to `path`."""
    import tempfile

    with storing(path):
        make_folder(path.parent)
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


class FileBatch:
    """Files that are written under temporary names, stored by one sync, and then renamed.

    A file with its final name is complete, even after a power cut, and needs no fsync of its own. If the program is killed, the
    next batch with the same folder removes the temporary files.
    """

    def __init__(self, aside: Path) -> None:
        """Prepare a batch and remove files that an earlier program left in `aside`.

        `aside`: a folder for this batch alone, on the same disk as its files. It exists only while it contains files.
        """
        self._aside = aside
        self._waiting: dict[str, tuple[Path, bool]] = {}
        self._count = self.bytes = 0
        if os.path.lexists(aside):
            import shutil

            with storing(aside):
                shutil.rmtree(aside)

    def write(
        self, target: str, pieces: Iterable[bytes | memoryview], *, mode: int = 0o644, changed_ns: int | None = None
    ) -> str:
        """Write the content of `target` under a temporary name and return its sha256. The folder of `target` must exist.

        `changed_ns`: the modification time. Raises StorageError, including when the disk does not accept a file with that
        name.
        """
        with storing(target):
            is_new = not _exists(target)
            if not is_new and Path(target).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
            if not self._waiting:
                make_folder(self._aside)
            path = self._aside / str(self._count)
            self._count += 1
            digest = sha256()
            try:
                with path.open("xb") as file:
                    for piece in pieces:
                        digest.update(piece)
                        self.bytes += file.write(piece)
                    os.fchmod(file.fileno(), mode)
                if changed_ns is not None:
                    os.utime(path, ns=(changed_ns, changed_ns))
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            self._waiting[target] = path, is_new
        return digest.hexdigest()

    def drop(self, target: str) -> None:
        """Remove a file of this batch, whether it has its temporary or its final name."""
        path, _ = self._waiting.pop(target, (Path(target), False))
        path.unlink()

    def commit(self) -> dict[str, OSError]:
        """Sync all files and rename them. Return the error for each name that the disk does not accept; those files are lost.
        Raises StorageError."""
        errors_by_file: dict[str, OSError] = {}
        try:
            if self._waiting:
                with storing(self._aside):
                    _sync_files([path for path, _ in self._waiting.values()])
            for target, (path, is_new) in self._waiting.items():
                if (error := _give_name(path, target, is_new=is_new)) is not None:
                    errors_by_file[target] = error
        finally:
            self._waiting, self.bytes = {}, 0
            if os.path.lexists(self._aside):
                import shutil

                shutil.rmtree(self._aside, ignore_errors=True)
        return errors_by_file


def _give_name(path: Path, target: str, *, is_new: bool) -> OSError | None:
    """Rename a file; return the error if the disk does not accept that name. Raises StorageError for any other failure."""
    with storing(target):
        try:
            if is_new and _exists(target):  # the disk treats two different names as the same
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
            path.replace(target)
        except OSError as error:
            if error.errno in _NO_SPACE | _FORBIDDEN:
                raise
            return error
    return None


def find_shortage(folder: Path) -> str:
    """Return a sentence if the folder's disk has less free space than the reserve; otherwise return an empty string."""
    import shutil

    free = shutil.disk_usage(folder).free
    if free >= _RESERVE:
        return ""
    reserve = format_bytes(_RESERVE)
    return f"the disk of {folder} has {format_bytes(free)} free: outputs are collected only while at least {reserve} is free"


class DiskSpace:
    """The free space of one disk, minus the bytes that are reserved for outputs. Several nodes fill the disk at the same
    time."""

    def __init__(self) -> None:
        self._lock, self._promised = threading.Lock(), 0

    @contextmanager
    def keep_free(self, folder: Path, size: int) -> Iterator[None]:
        """Set aside `size` bytes of the disk for the duration of the `with` block. Raises StorageError if less than
        _RESERVE would then be free."""
        import shutil

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


def _sync_files(paths: Sequence[Path | str]) -> None:
    """Wait until these files, all on one file system, are on the disk. On Linux, a single call syncs all of them.

    Raises OSError if the disk refuses.
    """
    syncfs = _load_syncfs() if len(paths) > 1 else None
    for path in paths:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if syncfs is not None and syncfs(handle) == 0:
                return
            os.fsync(handle)
        finally:
            os.close(handle)


@cache
def _load_syncfs() -> Callable[[int], int] | None:
    """Return Linux's syncfs, which Python does not provide, or None on other systems."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    return getattr(ctypes.CDLL(None), "syncfs", None)


def _exists(path: Path | str) -> bool:
    """Return whether a file, folder or link of that name exists. Raises OSError if the name is invalid."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


def write_bytes(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a whole file in one step: a reader sees either the old file or the new one."""
    with writing(path, mode=mode) as file:
        file.write(data)


def write_text(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a whole text file in one step, in UTF-8."""
    write_bytes(path, text.encode(), mode=mode)
