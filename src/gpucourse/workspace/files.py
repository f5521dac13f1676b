"""Reading and writing: aside, flushed, renamed; a full disk or a forbidden folder becomes a sentence with a cure.

Records are plain dataclasses; msgspec checks their types and ignores keys that a later version added. What is
read is bounded by `outside` first.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from gpucourse.errors import DamagedFile, NewerFormat, StorageError
from gpucourse.outside.documents import parse_json
from gpucourse.outside.files import read_bounded
from gpucourse.outside.names import OutsideError, check_part, printable
from gpucourse.units import parse_moment

T = TypeVar("T")

_MAPPING = 1
_RECORD_BYTES, _RECORD_ITEMS = 32 << 20, 1_500_000  # a run of 64 nodes that brought 2,000 files home from each
_METRICS_BYTES, _METRICS_ITEMS = 8 << 20, 500_000
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


def refuse_links(path: Path, inside: Path) -> None:
    """Raises StorageError where a part of `path` below the folder `inside` is a link: what is written there would land
    elsewhere, and what is read there would not be the run's own."""
    place = inside
    for part in path.relative_to(inside).parts:
        place /= part
        if place.is_symlink():
            raise StorageError(
                f"{place} is a link, not a folder of the run",
                hint=f"see where it leads (ls -l '{place}'), take it away, then type the command again",
            )


def copy_file(source: Path, target: Path) -> None:
    """Copy one file under its new name at once; a link is followed, so that what lies here stands alone."""
    import shutil

    with source.open("rb") as original, writing(target) as copy:
        shutil.copyfileobj(original, copy, 1 << 20)


def write_record(path: Path, record: object, *, mode: int = 0o644) -> None:
    """Store a dataclass (or plain dicts and lists) as indented JSON."""
    write_bytes(path, to_json(record), mode=mode)


def to_json(record: object) -> bytes:
    """A dataclass (or plain dicts and lists) as indented JSON, ending in a newline. Paths become text."""
    return msgspec.json.format(msgspec.json.encode(record, enc_hook=_plain), indent=2) + b"\n"


def read_record(path: Path, kind: type[T]) -> T | None:
    """The dataclass stored at `path`; None where there is no such file.

    Raises NewerFormat where the file's version is above the dataclass's own, MissingError where it cannot be read, is not what
    the dataclass holds, or is larger than any record; in all cases the file stays as it is.
    """
    return convert_record(path, read_json(path), kind)


def convert_record(path: Path, document: Any, kind: type[T]) -> T | None:
    """The dataclass that the document read from `path` holds; None where there was no such file. Raises like `read_record`."""
    if document is None:
        if path.exists():
            raise DamagedFile(path, "it holds nothing")
        return None
    known = getattr(kind, "version", None)
    version = document.get("version") if isinstance(document, dict) else None
    if isinstance(known, int) and isinstance(version, int) and version > known:
        raise NewerFormat(
            f"{path} has format {version}; this gpucourse reads up to {known}. The file was left as it is.",
            hint="upgrade: pip install --upgrade gpucourse",
        )
    try:
        return msgspec.convert(document, kind, strict=False)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise DamagedFile(path, str(error)) from error


def check_record(path: Path, *, names: Iterable[str], moments: Iterable[str | None] = ()) -> None:
    """Whether what a record says can be used: its names become parts of paths, its times are counted with. Raises MissingError
    that names the record at `path`."""
    try:
        for name in names:
            check_part(name)
        for moment in moments:
            if moment is not None:
                parse_moment(moment)
    except ValueError as error:
        raise DamagedFile(path, printable(str(error))) from error


def read_json(path: Path, *, max_bytes: int = _RECORD_BYTES, max_items: int = _RECORD_ITEMS) -> Any:
    """The plain JSON document at `path`; None where there is no such file. This is the only way by which a document of a
    workspace comes in: a run's own script, or whoever sent a bundle, may have written it.

    Raises MissingError where it cannot be read, is not JSON, or is larger or nested deeper than any honest one.
    """
    data = read_file(path, max_bytes)
    if data is None:
        return None
    try:
        return parse_json(data, max_bytes=max_bytes, max_items=max_items)
    except OutsideError as error:
        raise DamagedFile(path, str(error)) from error


def read_file(path: Path, max_bytes: int) -> bytes | None:
    """The content of a plain file of at most `max_bytes`; None where there is no such file. Raises MissingError."""
    try:
        return read_bounded(path, max_bytes)
    except FileNotFoundError:
        return None
    except (OSError, OutsideError) as error:
        if isinstance(error, OutsideError) and not path.is_dir():
            raise DamagedFile(path, str(error)) from error
        why = error.strerror if isinstance(error, OSError) else "it is a folder"
        raise StorageError(f"cannot read {path}: {why}", hint=f"look at it: ls -ld '{path.parent}' '{path}'") from error


def read_metrics(path: Path) -> Any:
    """What a script measured, as `read_json` reads it, within the size that can still be judged and drawn."""
    return read_json(path, max_bytes=_METRICS_BYTES, max_items=_METRICS_ITEMS)


def read_mapping(path: Path) -> dict[str, Any]:
    """The names and values stored at `path` by `write_mapping`; empty where there is no such file.

    Raises NewerFormat and MissingError as `read_record` does; the file then stays as it is.
    """
    document = read_record(path, dict[str, Any]) or {}
    version = document.pop("version", None)
    if isinstance(version, int) and version > _MAPPING:
        raise NewerFormat(
            f"{path} has format {version}; this gpucourse reads up to {_MAPPING}. The file was left as it is.",
            hint="upgrade: pip install --upgrade gpucourse",
        )
    return document


def write_mapping(path: Path, values: Mapping[str, object]) -> None:
    """Store names and values, with the version of this form."""
    write_record(path, {"version": _MAPPING, **values})


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"cannot store {type(value).__name__}")
