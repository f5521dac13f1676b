"""Archives from outside, a tar as it arrives and a zip on disk: every size, count and name is bounded before it is used."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple
from zlib import adler32

from gpucourse.outside.names import OutsideError, printable, relative_name

if TYPE_CHECKING:
    import zipfile

BLOCK = 512
PIECE = 1 << 20

_MAX_EXTENSION = 64 << 10  # bytes of one extended header; a valid one has a name and a time
_PLAIN, _LINKS, _EXTENDED = {b"0", b"\0"}, {b"1", b"2"}, b"x"
_WITHOUT_CONTENT = {b"1", b"2", b"3", b"4", b"5", b"6"}

_EMPTY = bytes(BLOCK)
_LATEST_NS = 1 << 62
_NO_HEADERS: Mapping[str, str] = {}

_ZIP_END = struct.Struct("<4sHHHHIIH")
_ZIP_END_MARK, _ZIP_ENTRY_MARK, _ZIP_LARGE_MARK = b"PK\x05\x06", b"PK\x01\x02", b"PK\x06\x07"
_ZIP_LARGE_BYTES = 20  # of the record that locates the end record of the large form
_ZIP_METHODS = {0, 8}  # stored, deflated
_ZIP_COMMENT = (1 << 16) - 1


class TarMember(NamedTuple):
    """One member of a tar. `name` is the tar's, with bytes that are not UTF-8 escaped; nothing about it is checked. `kind` is
    `file`, `link` or `other`; `headers` are those of its extended header. `changed_ns`: when it was changed, if its header has
    the nanoseconds, as ours do."""

    name: str
    size: int
    kind: str
    mode: int
    link: str
    headers: Mapping[str, str]
    changed_ns: int | None


class TarReader:
    """A tar while it arrives, without seeking or recursion. `read(count)` returns at most that many bytes, none at the end.

    Raises OutsideError if the tar is damaged, ends early, has more than `max_members`, or announces content beyond `max_total`
    bytes in all, before any of that content is read.
    """

    def __init__(self, read: Callable[[int], bytes], *, max_members: int, max_total: int) -> None:
        self._read, self._members, self._total = read, max_members, max_total
        self._left = self._padding = 0
        self._data, self._at = b"", 0  # what has arrived, and the position of the next byte in it

    def __iter__(self) -> Iterator[TarMember]:
        """Yield the members in their order. Read the content of each by `pieces` before the next; what is not read is
        skipped."""
        while (member := self._next()) is not None:
            if self._members <= 0:
                raise OutsideError("the tar holds more files than were announced to be taken")
            self._members -= 1
            yield member

    def pieces(self) -> Iterator[memoryview]:
        """Yield the content of the latest member, in pieces, none of them copied."""
        while self._left:
            if self._at == len(self._data):
                self._fill()
            data = memoryview(self._data)[self._at : self._at + self._left]
            self._at += len(data)
            self._left -= len(data)
            yield data

    def content(self, max_bytes: int) -> bytes:
        """Return the whole content of the latest member. Raises OutsideError if it is larger than `max_bytes`."""
        if self._left > max_bytes:
            raise OutsideError(f"a member of the tar has {self._left} bytes; the limit is {max_bytes}")
        return b"".join(self.pieces())

    def read_rest(self, max_bytes: int) -> None:
        """Read what follows the end of the tar. Raises OutsideError if it is more than that many bytes."""
        rest = len(self._data) - self._at
        while rest <= max_bytes and (data := self._read(PIECE)):
            rest += len(data)
        if rest > max_bytes:
            raise OutsideError("the tar is followed by more than it announced")

    def _next(self) -> TarMember | None:
        header = self._header()
        if header is None:
            return None
        extended: Mapping[str, str] = _NO_HEADERS
        if header.type == _EXTENDED:
            if self._left > _MAX_EXTENSION:
                raise OutsideError(f"the tar has an extended header of {self._left} bytes")
            extended = _pax_records(self.content(_MAX_EXTENSION))
            header = self._header()
            if header is None or header.type == _EXTENDED:
                raise OutsideError("the tar has an extended header without a file")
        if header.type == b"g":
            raise OutsideError("the tar has a global header")
        return self._member(header, extended)

    def _member(self, header: _Header, extended: Mapping[str, str]) -> TarMember:
        kind = "file" if header.type in _PLAIN else "link" if header.type in _LINKS else "other"
        name, size, link = header.name, header.size, header.link
        if extended:
            if any(key.startswith("GNU.sparse.") for key in extended):
                kind = "other"
            name, link = extended.get("path", name), extended.get("linkpath", link)
            size = _decimal(extended["size"]) if "size" in extended else size
        self._announce(0 if header.type in _WITHOUT_CONTENT else size)
        return TarMember(name, size, kind, header.mode, link, extended, header.changed_ns)

    def _header(self) -> _Header | None:
        """Return the next header block; None at the two empty blocks that end a tar."""
        self._skip()
        block = self._exactly(BLOCK)
        if block == _EMPTY:
            if self._exactly(BLOCK) != _EMPTY:
                raise OutsideError("the tar has an empty block in its middle")
            return None
        header = _Header(block)
        if header.type == _EXTENDED:
            self._announce(header.size)
        return header

    def _announce(self, size: int) -> None:
        if size > self._total:
            raise OutsideError(f"the tar announces {size} bytes more than the {self._total} that are still taken")
        self._total -= size
        self._left, self._padding = size, -size % BLOCK

    def _skip(self) -> None:
        if self._left:
            for _ in self.pieces():
                continue
        self._exactly(self._padding)
        self._padding = 0

    def _exactly(self, count: int) -> bytes:
        data = self._data[self._at : self._at + count]
        self._at += len(data)
        while len(data) < count:
            self._fill()
            more = self._data[: count - len(data)]
            self._at = len(more)
            data += more
        return data

    def _fill(self) -> None:
        """Read more if nothing is left of what has arrived."""
        self._data, self._at = self._read(PIECE), 0
        if not self._data:
            raise OutsideError("the tar ends early")


class _Header:
    """A header block: its checksum is right, its numbers are numbers."""

    def __init__(self, block: bytes) -> None:
        if _octal(block[148:156]) != _sum(block) - sum(block[148:156]) + 8 * ord(" "):
            raise OutsideError("the tar has a header with a wrong checksum")
        self.type, self.size, self.mode = block[156:157], _number(block[124:136]), _octal(block[100:108])
        self.link = _text(block[157:257])
        self.name = _text(block[:100])
        if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
            self.name = f"{prefix}/{self.name}"
        self.changed_ns = _changed_ns(block[136:148], block[500:])


def _sum(block: bytes) -> int:
    """Return the sum of the bytes of a block, from Adler-32: it counts modulo 65,521, which up to 256 bytes cannot reach."""
    half = BLOCK // 2
    return (adler32(block[:half]) & 0xFFFF) + (adler32(block[half:]) & 0xFFFF) - 2


def _changed_ns(seconds: bytes, rest: bytes) -> int | None:
    """Return the time of change: POSIX's field has the seconds, and in our tars the unused end of the block has the rest. None
    if there is none, or a time that no file can have."""
    if not rest[:9].isdigit():
        return None
    changed_ns = _number(seconds) * 10**9 + int(rest[:9])
    return changed_ns if changed_ns < _LATEST_NS else None


def _pax_records(data: bytes) -> dict[str, str]:
    """Return the records `LENGTH KEY=VALUE\\n` of an extended header."""
    records: dict[str, str] = {}
    while data:
        length, space, _ = data[:21].partition(b" ")
        count = _decimal(length.decode("ascii", "replace")) if space else 0
        record = data[len(length) + 1 : count]
        if count > len(data) or not record.endswith(b"\n") or b"=" not in record:
            raise OutsideError("the tar has a damaged extended header")
        key, _, value = record[:-1].partition(b"=")
        if key == b"path" and b"\0" in value:
            raise OutsideError("the tar has a name with a zero byte")
        records[key.decode("utf-8", "backslashreplace")] = value.decode("utf-8", "backslashreplace")
        data = data[count:]
    return records


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if digits.strip(b"01234567"):
        raise OutsideError("the tar has a header with an invalid number")
    return int(digits or b"0", 8)


def _number(field: bytes) -> int:
    """Return a size: octal, or for more than 8 GiB, in GNU's form, the bytes of the number itself."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    return _octal(field)


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise OutsideError("the tar has an extended header with an invalid number")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class ZipLimits:
    """The limits of a zip, unpacked: files, bytes of one file, bytes in all; and bytes of its table of contents."""

    members: int
    member_bytes: int
    total_bytes: int
    contents_bytes: int = 16 << 20


def unpack_zip(path: Path, root: Path, limits: ZipLimits) -> list[str]:
    """Unpack a zip into the empty folder `root`; return the names of its files, as they are below `root`.

    Nothing in the zip is trusted: names must be relative and differ from each other, links and devices are refused, content is
    counted while it is unpacked. Raises OutsideError if the zip is damaged or exceeds a limit; OSError if `path` cannot be read
    or the disk of `root` refuses.
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
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError) as error:
        raise OutsideError(f"the zip is damaged: {error}") from None
    except (ValueError, struct.error, OverflowError) as error:
        if isinstance(error, OutsideError):
            raise
        raise OutsideError(f"the zip is damaged: {error}") from None
    return list(members)


def _limit_contents(file: IO[bytes], limits: ZipLimits) -> int:
    """Refuse a table of contents that is too large before `zipfile` reads it whole; return the size of the zip."""
    size = file.seek(0, 2)
    tail_at = max(0, size - _ZIP_LARGE_BYTES - _ZIP_END.size - _ZIP_COMMENT)  # with what may come before the end record
    file.seek(tail_at)
    tail = file.read()
    plain = tail[-_ZIP_END.size :]
    at = len(tail) - _ZIP_END.size if plain.startswith(_ZIP_END_MARK) and plain.endswith(b"\0\0") else tail.rfind(_ZIP_END_MARK)
    if at < 0 or len(tail) - at < _ZIP_END.size:
        raise OutsideError("it is not a zip, or it ends early")
    _, _, _, _, members, contents, _, _ = _ZIP_END.unpack_from(tail, at)
    if contents == 0xFFFFFFFF or members == 0xFFFF or tail[max(0, at - _ZIP_LARGE_BYTES) : at].startswith(_ZIP_LARGE_MARK):
        raise OutsideError("the zip is of the form for very large archives")
    if members > limits.members:
        raise OutsideError(f"the zip holds {members} files; the limit is {limits.members}")
    if contents > limits.contents_bytes:
        raise OutsideError(f"the zip has a table of contents of {contents} bytes; the limit is {limits.contents_bytes}")
    file.seek(max(0, tail_at + at - contents))
    if file.read(contents).count(_ZIP_ENTRY_MARK) > limits.members:  # `zipfile` reads the table to its end, not the number
        raise OutsideError(f"the zip holds more files than it says; the limit is {limits.members}")
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
            raise OutsideError(f"the zip holds {printable(name, 80)}, which is not a plain file")
        if not 0 <= member.header_offset < size:
            raise OutsideError(f"the zip says that {printable(name, 80)} begins outside the zip itself")
        if member.compress_type not in _ZIP_METHODS:  # other methods need as much memory as the archive requests
            raise OutsideError(f"the zip holds {printable(name, 80)} in a compression that is not read")
        if name in members:
            raise OutsideError(f"the zip holds {printable(name, 80)} twice")
        if member.file_size > limits.member_bytes:
            raise OutsideError(f"the zip holds {printable(name, 80)} of {member.file_size} bytes; limit {limits.member_bytes}")
        total += member.file_size
        members[name] = member
    if len(members) > limits.members or total > limits.total_bytes:
        raise OutsideError(f"the zip holds {len(members)} files of {total} bytes; the limit is {limits.total_bytes}")
    return members


def _unpack_member(bundle: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, limit: int) -> int:
    """Unpack one file; return its size."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = target.open("xb")
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise OutsideError(
            f"the zip holds {printable(member.filename, 80)}, whose name another file needs as a folder"
        ) from None
    size = 0
    with copy, bundle.open(member) as source:
        while data := source.read(PIECE):
            size += len(data)
            if size > min(limit, member.file_size):
                raise OutsideError(f"the zip holds {printable(member.filename, 80)}, which is larger than it says")
            copy.write(data)
    return size
