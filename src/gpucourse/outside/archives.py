"""Read archives from outside: a tar as it arrives, and a zip on disk. Every size, count and name is checked before it is
used."""

from __future__ import annotations

import re
import struct
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from gpucourse.outside.names import OutsideError, printable, relative_name

if TYPE_CHECKING:
    import zipfile

PIECE = 1 << 18

_MAX_HEADERS = 1 << 16  # bytes before the content of a member; the agent's members have a name and a time there
_FILES = {tarfile.REGTYPE, tarfile.AREGTYPE}
_LINKS = {tarfile.SYMTYPE, tarfile.LNKTYPE}
_TIME = re.compile(r"([0-9]{1,10})\.([0-9]{9})", re.ASCII)

_ZIP_END = struct.Struct("<4sHHHHIIH")
_ZIP_END_MARK, _ZIP_ENTRY_MARK, _ZIP_LARGE_MARK = b"PK\x05\x06", b"PK\x01\x02", b"PK\x06\x07"
_ZIP_LARGE_BYTES = 20  # the size of the record that locates the end record of the large form
_ZIP_METHODS = {0, 8}  # stored, deflated
_ZIP_COMMENT = (1 << 16) - 1


class TarMember(NamedTuple):
    """One member of a tar.

    `name`: the unchecked name in the tar; bytes that are not UTF-8 are escaped.
    `kind`: `file`, `link` or `other`.
    `changed_ns`: the time of the file's last change, or None if the extended header does not contain the nanoseconds.
    """

    name: str
    size: int
    kind: str
    mode: int
    link: str
    changed_ns: int | None


class TarReader:
    """A reader of a tar that arrives in pieces, without seeking.

    Raises OutsideError if the tar is damaged, ends within a member, or announces more than `max_members` members or `max_total`
    bytes of content. This check comes before the content is read.

    The reader does not notice if the tar ends between two members. So the last member must show that the tar is complete.
    """

    def __init__(self, pieces: Iterable[bytes], *, max_members: int, max_total: int) -> None:
        self._source = _Source(iter(pieces))
        self._members, self._total = max_members, max_total
        self._content: IO[bytes] | None = None

    def __iter__(self) -> Iterator[TarMember]:
        """Yield the members in order. To read a member's content, call `pieces` before requesting the next member. Content that
        is not read is skipped."""
        source = cast("IO[bytes]", self._source)
        with _damaged(), tarfile.open(mode="r|", fileobj=source, bufsize=PIECE, errors="backslashreplace") as tar:
            while (info := tar.next()) is not None:
                if info.type == tarfile.XGLTYPE or tar.pax_headers:
                    raise OutsideError("the tar has a global header")
                yield self._open(tar, info)
                for _ in self.pieces():
                    continue
                self._source.room = _MAX_HEADERS + PIECE

    def pieces(self) -> Iterator[bytes]:
        """Yield the content of the latest member, in pieces."""
        with _damaged():
            while self._content is not None and (data := self._content.read(PIECE)):
                yield data

    def content(self, max_bytes: int) -> bytes:
        """Return the whole content of the latest member. Raises OutsideError if it is larger than `max_bytes`."""
        data = b""
        for piece in self.pieces():
            data += piece
            if len(data) > max_bytes:
                raise OutsideError(f"a member of the tar has more than {max_bytes} bytes")
        return data

    def read_rest(self, max_bytes: int) -> None:
        """Read the bytes after the end of the tar. Raises OutsideError if there are more than `max_bytes`."""
        self._source.room = max_bytes
        while self._source.read(PIECE):
            continue

    def _open(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> TarMember:
        self._members -= 1
        self._total -= info.size
        if self._members < 0:
            raise OutsideError("the tar contains more files than it announced")
        if info.size < 0 or self._total < 0:
            raise OutsideError(f"the tar announces {info.size} bytes, more than the limit still allows")
        is_file = info.type in _FILES and not info.issparse()
        self._content = tar.extractfile(info) if is_file else None
        self._source.room = info.size + _MAX_HEADERS + PIECE
        kind = "file" if is_file else "link" if info.type in _LINKS else "other"
        time = _TIME.fullmatch(info.pax_headers.get("mtime", ""))
        changed_ns = int(time[1] + time[2]) if time else None
        return TarMember(info.name, info.size, kind, info.mode, info.linkname, changed_ns)


class _Source:
    """The file object that `tarfile` reads. It raises OutsideError after `room` bytes, so that no header can fill the
    memory."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, b""
        self.room = _MAX_HEADERS + PIECE

    def read(self, count: int) -> bytes:
        """Return at most `count` bytes, and no bytes at the end."""
        while not self._held:
            if (piece := next(self._pieces, None)) is None:
                return b""
            self._held = piece
        data, self._held = self._held[:count], self._held[count:]
        self.room -= len(data)
        if self.room < 0:
            raise OutsideError("the tar has more bytes than it announced")
        return data


@contextmanager
def _damaged() -> Iterator[None]:
    """Turn the errors of `tarfile` into OutsideError."""
    try:
        yield
    except OutsideError:
        raise
    except (tarfile.TarError, RecursionError, OverflowError, EOFError, ValueError, IndexError) as error:
        raise OutsideError(f"the tar is damaged or ends early: {error}") from None


@dataclass(frozen=True, kw_only=True)
class ZipLimits:
    """The limits for unpacking a zip.

    `members`: the number of files.
    `contents_bytes`: the size of the table of contents.
    """

    members: int
    member_bytes: int
    total_bytes: int
    contents_bytes: int = 16 << 20


def unpack_zip(path: Path, root: Path, limits: ZipLimits) -> list[str]:
    """Unpack a zip into the empty folder `root`. Return the names of its files, relative to `root`.

    Nothing in the zip is trusted. Raises OutsideError if the zip is damaged or exceeds a limit, or if it contains a link, a
    device, an unsafe name, or the same name twice. Raises OSError if `path` cannot be read or `root` cannot be written.
    """
    import zipfile
    import zlib

    try:
        with path.open("rb") as file:
            size = _limit_contents(file, limits)
            with zipfile.ZipFile(file) as bundle:
                members = _members(bundle, limits, size)
                total = limits.total_bytes
                for name, member in members.items():
                    total -= _unpack_member(bundle, member, root / name, min(limits.member_bytes, total))
    except OutsideError:
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError) as error:
        raise OutsideError(f"the zip is damaged: {error}") from None
    return list(members)


def _limit_contents(file: IO[bytes], limits: ZipLimits) -> int:
    """Refuse a table of contents that is too large, before `zipfile` reads it whole. Return the size of the zip."""
    size = file.seek(0, 2)
    tail_at = max(0, size - _ZIP_LARGE_BYTES - _ZIP_END.size - _ZIP_COMMENT)  # including what may come before the end record
    file.seek(tail_at)
    tail = file.read()
    plain = tail[-_ZIP_END.size :]
    at = len(tail) - _ZIP_END.size if plain.startswith(_ZIP_END_MARK) and plain.endswith(b"\0\0") else tail.rfind(_ZIP_END_MARK)
    if at < 0 or len(tail) - at < _ZIP_END.size:
        raise OutsideError("it is not a zip, or it ends early")
    _, _, _, _, members, contents, _, _ = _ZIP_END.unpack_from(tail, at)
    if contents == 0xFFFFFFFF or members == 0xFFFF or tail[max(0, at - _ZIP_LARGE_BYTES) : at].startswith(_ZIP_LARGE_MARK):
        raise OutsideError("the zip has the ZIP64 format, which is not accepted")
    if members > limits.members:
        raise OutsideError(f"the zip contains {members} files; the limit is {limits.members}")
    if contents > limits.contents_bytes:
        raise OutsideError(f"the zip has a table of contents of {contents} bytes; the limit is {limits.contents_bytes}")
    file.seek(max(0, tail_at + at - contents))
    if file.read(contents).count(_ZIP_ENTRY_MARK) > limits.members:  # `zipfile` reads every entry, whatever their stated number
        raise OutsideError(f"the zip contains more files than it says; the limit is {limits.members}")
    return size


def _members(bundle: zipfile.ZipFile, limits: ZipLimits, size: int) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    total = 0
    for member in bundle.infolist():
        if member.is_dir():
            continue
        name = relative_name(member.filename)
        kind = (member.external_attr >> 16) & 0o170000
        if "\\" in name or kind not in {0, 0o100000}:
            raise OutsideError(f"the zip contains {printable(name, 80)}, which is not a plain file")
        if not 0 <= member.header_offset < size:
            raise OutsideError(f"the zip says that {printable(name, 80)} begins outside the zip itself")
        if member.compress_type not in _ZIP_METHODS:  # other methods need as much memory as the archive requests
            raise OutsideError(f"the zip contains {printable(name, 80)} with an unsupported compression")
        if name in members:
            raise OutsideError(f"the zip contains {printable(name, 80)} twice")
        if member.file_size > limits.member_bytes:
            raise OutsideError(
                f"the zip contains {printable(name, 80)} of {member.file_size} bytes; the limit is {limits.member_bytes}"
            )
        total += member.file_size
        members[name] = member
    if len(members) > limits.members or total > limits.total_bytes:
        raise OutsideError(f"the zip contains {len(members)} files ({total} bytes); the limit is {limits.total_bytes}")
    return members


def _unpack_member(bundle: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, limit: int) -> int:
    """Unpack one file and return its size."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = target.open("xb")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise OutsideError(
            f"the zip contains {printable(member.filename, 80)}, whose name another file needs as a folder"
        ) from None
    size = 0
    with copy, bundle.open(member) as source:
        while data := source.read(PIECE):
            size += len(data)
            if size > min(limit, member.file_size):
                raise OutsideError(f"the zip contains {printable(member.filename, 80)}, which is larger than it says")
            copy.write(data)
    return size
