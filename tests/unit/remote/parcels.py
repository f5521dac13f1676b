"""A node's tar of outputs, as tests make it."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path


class Parcel:
    """A tar as an honest agent sends it, with everything that a hostile node adds."""

    def __init__(self, **listing: object) -> None:
        self._file = io.BytesIO()
        self._tar = tarfile.TarFile(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)
        defaults: dict[str, object] = {"refused": [], "same": [], "env": None}
        self.add("listing.json", json.dumps({**defaults, **listing}).encode())

    def add(self, name: str, content: bytes = b"x", **fields: object) -> Parcel:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        for field, value in fields.items():
            setattr(member, field, value)
        self._tar.addfile(member, io.BytesIO(content))
        return self

    def finish(self, *, files: tuple[str, ...] = ()) -> bytes:
        self.add("closing.json", json.dumps(list(files)).encode())
        self._tar.close()
        return self._file.getvalue()


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
