"""What a node sends of its outputs, as tests make it."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path


class Parcel:
    """A tar as an honest agent sends it, with whatever a hostile node adds."""

    def __init__(self, **listing: object) -> None:
        self._file = io.BytesIO()
        self._tar = tarfile.TarFile(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)
        told: dict[str, object] = {"files": 0, "left": [], "same": [], "state": "ended", "env": None}
        self.add("listing.json", json.dumps({**told, **listing}).encode())

    def add(self, name: str, content: bytes = b"x", **fields: object) -> Parcel:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        for field, value in fields.items():
            setattr(member, field, value)
        self._tar.addfile(member, io.BytesIO(content))
        return self

    def add_as_it_is(self, blocks: bytes) -> Parcel:
        self._file.write(blocks)
        self._tar.offset += len(blocks)
        return self

    def finish(self, *, changed: tuple[str, ...] = ()) -> bytes:
        self.add("closing.json", json.dumps({"changed": list(changed)}).encode())
        self._tar.close()
        return self._file.getvalue()


def timed_member(name: str, seconds: bytes, rest: bytes) -> bytes:
    """A file of one byte in a tar, with these words for the time of its change: POSIX's field, and the end of the header."""
    member = tarfile.TarInfo(name)
    member.size = 1
    block = bytearray(member.tobuf(tarfile.USTAR_FORMAT))
    block[136:148], block[148:156], block[500:] = seconds.ljust(12, b"\0"), b" " * 8, rest.ljust(12, b"\0")
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + b"x".ljust(512, b"\0")


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
