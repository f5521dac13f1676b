"""Look up functions and addresses: where a function begins in a file, and which function of a process contains an address."""

from __future__ import annotations

import bisect
import functools
import struct
import subprocess
from pathlib import Path

LOAD = 1  # PT_LOAD: a part of the file that is mapped


class TracerFailed(Exception):
    """A tracer did not start, or did not end as it should. The text is the tracer's own message."""


class NoSymbols(TracerFailed):
    """A file's functions cannot be read. The text gives the reason."""


def list_functions(library: Path) -> dict[str, int]:
    """Return the virtual address, as in the ELF file, of each function that a library exports. Raises NoSymbols."""
    return {name: address for address, name in _run_nm("-D", library)}


def find_offset(library: Path, address: int) -> int:
    """Return the offset in the file that belongs to a virtual address. Raises NoSymbols."""
    for offset, start, size in _read_parts(library):
        if start <= address < start + size:
            return address - start + offset
    raise NoSymbols(f"{library} has nothing at {address:#x}")


def name_address(pid: int, address: int) -> str:
    """Return the function of a process that contains an address, or the address itself if no mapped file names it."""
    for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        words = line.split(maxsplit=5)
        first, last = (int(end, 16) for end in words[0].split("-"))
        if first <= address < last and len(words) == 6 and words[5].startswith("/"):
            file = Path(f"/proc/{pid}/root{words[5]}")
            for offset, start, size in _read_parts(file):
                place = address - first + int(words[2], 16)
                if offset <= place < offset + size:
                    return _name(file, place - offset + start) or f"{address:#x}"
    return f"{address:#x}"


def _name(file: Path, address: int) -> str | None:
    symbols = sorted({*_run_nm("", file), *_run_nm("-D", file)})
    place = bisect.bisect_right(symbols, (address, "\x7f")) - 1
    return symbols[place][1] if place >= 0 else None


@functools.lru_cache(maxsize=32)
def _run_nm(flag: str, file: Path) -> tuple[tuple[int, str], ...]:
    """Return address and name of the functions in a file. With "-D", return only exported functions."""
    command = ["nm", *([flag] if flag else []), "--defined-only", str(file)]
    try:
        process = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        raise NoSymbols("nm is not installed: sudo apt-get install binutils") from None
    if process.returncode != 0:
        raise NoSymbols(f"nm cannot read {file}: {process.stderr.strip()[:200]}")
    lines = [line.split() for line in process.stdout.splitlines()]
    return tuple((int(words[0], 16), words[2].partition("@")[0]) for words in lines if len(words) == 3 and words[1] in "tTwWiu")


@functools.lru_cache(maxsize=32)
def _read_parts(file: Path) -> tuple[tuple[int, int, int], ...]:
    """Return the file offset, address and size of each mapped part of a 64-bit ELF file (elf(5)). Raises NoSymbols."""
    try:
        with file.open("rb") as text:
            head = text.read(64)
            if head[:5] != b"\x7fELF\x02":
                raise NoSymbols(f"{file} is not a 64-bit library")
            (table,), (width, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
            text.seek(table)
            parts = [struct.unpack_from("<IIQQQQ", text.read(width)) for _ in range(count)]
    except OSError as error:
        raise NoSymbols(f"{file}: {error.strerror}") from None
    return tuple((offset, address, size) for kind, _, offset, address, _, size in parts if kind == LOAD)
