"""Read and write the records of a workspace, and change stored names and values under a lock.

Records are plain dataclasses. msgspec checks their types and ignores keys that a later version added. The checks of `outside`
limit every file that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gpucourse.errors import DamagedFile, MissingError, NewerFormat, StorageError
from gpucourse.outside.documents import CONVERT_LOCK, parse_json
from gpucourse.outside.files import read_bounded
from gpucourse.outside.names import OutsideError, check_part, printable
from gpucourse.storage import write_bytes, writing
from gpucourse.units import parse_moment
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

T = TypeVar("T")
K = TypeVar("K")

MAPPING_VERSION = 1
RECORD_BYTES, _RECORD_ITEMS = 32 << 20, 1_500_000  # a run of 64 nodes with 2,000 collected files of each
_METRICS_BYTES, _METRICS_ITEMS = 8 << 20, 500_000


def refuse_links(path: Path, root: Path) -> None:
    """Check that no part of `path` below the folder `root` is a link. Raises StorageError.

    Through a link, a file would be written outside of `root`, or a file that does not belong to the run would be read.
    """
    place = root
    for part in path.relative_to(root).parts:
        place /= part
        if place.is_symlink():
            raise StorageError(
                f"{place} is a link, not a folder of the run",
                hint=f"see where it points (ls -l '{place}'), remove it, then type the command again",
            )


def copy_file(source: Path, target: Path) -> None:
    """Copy one file to its new name in one step. A link is followed, so that the copy is a plain file."""
    import shutil

    with source.open("rb") as original, writing(target) as copy:
        shutil.copyfileobj(original, copy, 1 << 20)


def write_record(path: Path, record: object, *, mode: int = 0o644) -> None:
    """Store a dataclass (or plain dicts and lists) as indented JSON."""
    write_bytes(path, to_json(record), mode=mode)


def to_json(record: object) -> bytes:
    """Return a dataclass (or plain dicts and lists) as indented JSON, ending in a newline. Paths become text."""
    return msgspec.json.format(msgspec.json.encode(record, enc_hook=_plain), indent=2) + b"\n"


def to_plain(record: object) -> Any:
    """Return a record as plain dicts, lists, text, numbers, true, false and None. Paths and amounts of money become text."""
    return msgspec.to_builtins(record, enc_hook=_plain, str_keys=True)


def read_record(path: Path, kind: type[T]) -> T | None:
    """Return the dataclass stored at `path`, or None if there is no such file. The file is never changed.

    Raises NewerFormat if the file's version is newer than the dataclass's. Raises MissingError if the file cannot be read, does
    not fit the dataclass, or is too large.
    """
    return convert_record(path, read_json(path), kind)


def convert_record(path: Path, document: Any, kind: type[T]) -> T | None:
    """Convert the document read from `path` to the dataclass. None, for a missing file, stays None. Raises the errors of
    `read_record`."""
    if document is None:
        return None
    supported = getattr(kind, "version", None)
    version = document.get("version") if isinstance(document, dict) else None
    if isinstance(supported, int) and isinstance(version, int) and version > supported:
        raise NewerFormat(path, version, supported)
    try:
        with CONVERT_LOCK:
            return msgspec.convert(document, kind, strict=False)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise DamagedFile(path, printable(str(error))) from error  # it may quote the file


def read_each(keys: Iterable[K], read: Callable[[K], T | None]) -> tuple[list[T], dict[K, MissingError]]:
    """Return the records that `read` returns for these keys, and the errors of the other records, by key."""
    records: list[T] = []
    errors: dict[K, MissingError] = {}
    for key in keys:
        try:
            records += [record] if (record := read(key)) is not None else []
        except MissingError as error:
            errors[key] = error
    return records, errors


def check_record(path: Path, *, names: Iterable[str], moments: Iterable[str | None] = ()) -> None:
    """Check that a record's names are safe in paths, and that its times can be parsed. Raises MissingError, which names the
    record at `path`."""
    try:
        for name in names:
            check_part(name)
        for moment in moments:
            if moment is not None:
                parse_moment(moment)
    except ValueError as error:
        raise DamagedFile(path, printable(str(error))) from error


def read_json(path: Path, *, max_bytes: int = RECORD_BYTES, max_items: int = _RECORD_ITEMS) -> Any:
    """Return the plain JSON document at `path`, or None if there is no such file.

    Raises MissingError if it cannot be read, is not JSON, or is larger or nested deeper than any valid document. Every document
    is checked, because a run's own script or the sender of a bundle may have written it.
    """
    data = read_file(path, max_bytes)
    if data is None:
        return None
    try:
        document = parse_json(data, max_bytes=max_bytes, max_items=max_items)
    except OutsideError as error:
        raise DamagedFile(path, str(error)) from error
    if document is None:
        raise DamagedFile(path, "it is empty")
    return document


def read_file(path: Path, max_bytes: int) -> bytes | None:
    """Return the content of a plain file of at most `max_bytes`, or None if there is no such file. Raises MissingError."""
    try:
        return read_bounded(path, max_bytes)
    except FileNotFoundError:
        return None
    except (OSError, OutsideError) as error:
        if isinstance(error, OutsideError) and not path.is_dir():
            raise DamagedFile(path, str(error)) from error
        reason = error.strerror if isinstance(error, OSError) else "it is a folder"
        raise StorageError(f"cannot read {path}: {reason}", hint=f"look at it: ls -ld '{path.parent}' '{path}'") from error


def read_metrics(path: Path) -> Any:
    """Read a script's metrics as `read_json` does, up to the size that can still be judged and drawn."""
    return read_json(path, max_bytes=_METRICS_BYTES, max_items=_METRICS_ITEMS)


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the names and values that `workspace.mapping` stored at `path`, or an empty dict if there is no such file.

    Raises NewerFormat and MissingError like `read_record`. The file is never changed.
    """
    document = read_record(path, dict[str, Any]) or {}
    version = document.pop("version", None)
    if isinstance(version, int) and version > MAPPING_VERSION:
        raise NewerFormat(path, version, MAPPING_VERSION)
    return document


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"cannot store {type(value).__name__}")


@contextmanager
def changing(paths: WorkspacePaths, path: Path) -> Iterator[dict[str, Any]]:
    """Yield the content of `path`. If the block changes it and raises no error, store it. Raises the errors of `read_mapping`
    and `hold_lock`."""
    with hold_lock(paths.lock(path.stem), f"changing {path.name}"):
        former_bytes = read_mapping(path)
        values = dict(former_bytes)
        yield values
        if values != former_bytes:
            write_record(path, {"version": MAPPING_VERSION, **values})
