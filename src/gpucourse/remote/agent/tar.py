"""The headers of a tar in the POSIX form: `tarfile` needs ten times as long for a small file's header."""

from __future__ import annotations

import os

BLOCK = 512
END = bytes(2 * BLOCK)
_MOST_NAME, _MOST_SIZE, _LATEST_S = 100, 8 << 30, 8 << 30  # the limits of a header's fields
_EXECUTABLE, _PLAIN = 0o755, 0o644
_REST = 12  # bytes at the end of a header that have no meaning
_MIDDLE = (bytes(100) + b"ustar\x0000").ljust(BLOCK - 157 - _REST, b"\0")  # no link, the name of the format, no user's name


def header(name: str, size: int, executable: bool = False, mtime_ns: int | None = None) -> bytes:
    """Return what comes before the content of a plain file. The nanoseconds of `mtime_ns`, for which POSIX has no field, are
    nine digits at the end of the block, which POSIX leaves unused: a separate record would be two blocks more for every
    file."""
    path = os.fsencode(name)
    records = b""
    if len(path) > _MOST_NAME or not path.isascii():
        records += _record(b"path", path)
    if size >= _MOST_SIZE:
        records += _record(b"size", b"%d" % size)
    extended = _block(b"././@PaxHeader", len(records), _PLAIN, b"x") + pad(records) if records else b""
    mode = _EXECUTABLE if executable else _PLAIN
    return extended + _block(path[:_MOST_NAME], size % _MOST_SIZE, mode, b"0", mtime_ns)


def pad(content: bytes) -> bytes:
    """Return the content with the zeros that complete its last block."""
    return content + bytes(-len(content) % BLOCK)


def _record(key: bytes, value: bytes) -> bytes:
    """Return `LENGTH KEY=VALUE` and the end of the line; the length counts its own digits."""
    rest = b" %s=%s\n" % (key, value)
    length = len(rest)
    while length != len(rest) + len(b"%d" % length):
        length = len(rest) + len(b"%d" % length)
    return b"%d%s" % (length, rest)


def _block(name: bytes, size: int, mode: int, kind: bytes, mtime_ns: int | None = None) -> bytes:
    seconds, rest = 0, b""
    if mtime_ns is not None and 0 <= mtime_ns < _LATEST_S * 10**9:
        seconds, rest = mtime_ns // 10**9, b"%09d" % (mtime_ns % 10**9)
    numbers = b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (mode, 0, 0, size, seconds)
    total = sum(name) + sum(numbers) + sum(kind) + sum(_MIDDLE) + sum(rest) + 8 * ord(" ")
    return b"%s%s%06o\0 %s%s%s" % (name.ljust(_MOST_NAME, b"\0"), numbers, total, kind, _MIDDLE, rest.ljust(_REST, b"\0"))
