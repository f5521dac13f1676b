"""The headers of a tar in the POSIX form: `tarfile` takes ten times as long for the header of a small file."""

from __future__ import annotations

import os

BLOCK = 512
END = bytes(2 * BLOCK)
_MOST_NAME, _MOST_SIZE = 100, 8 << 30  # what the fields of a header hold
_EXECUTABLE, _PLAIN = 0o755, 0o644


def header(name: str, size: int, executable: bool = False, mtime_ns: int | None = None) -> bytes:
    """What comes before the content of a plain file. `mtime_ns` goes into a record of our own, `GPUCOURSE.mtime_ns`."""
    path = os.fsencode(name)
    records = b"" if mtime_ns is None else _record(b"GPUCOURSE.mtime_ns", b"%d" % mtime_ns)
    if len(path) > _MOST_NAME or not path.isascii():
        records += _record(b"path", path)
    if size >= _MOST_SIZE:
        records += _record(b"size", b"%d" % size)
    extended = _block(b"././@PaxHeader", len(records), _PLAIN, b"x") + pad(records) if records else b""
    return extended + _block(path[:_MOST_NAME], size % _MOST_SIZE, _EXECUTABLE if executable else _PLAIN, b"0")


def pad(content: bytes) -> bytes:
    """The content with the zeros that complete its last block."""
    return content + bytes(-len(content) % BLOCK)


def _record(key: bytes, value: bytes) -> bytes:
    """`LENGTH KEY=VALUE` and the end of the line; the length counts its own digits."""
    rest = b" %s=%s\n" % (key, value)
    length = len(rest)
    while length != len(rest) + len(b"%d" % length):
        length = len(rest) + len(b"%d" % length)
    return b"%d%s" % (length, rest)


def _block(name: bytes, size: int, mode: int, kind: bytes) -> bytes:
    before = b"%s%07o\0%07o\0%07o\0%011o\0%011o\0" % (name.ljust(_MOST_NAME, b"\0"), mode, 0, 0, size, 0)
    after = (kind + bytes(100) + b"ustar\x0000").ljust(BLOCK - len(before) - 8, b"\0")
    return b"%s%06o\0 %s" % (before, sum(before) + sum(after) + 8 * ord(" "), after)
