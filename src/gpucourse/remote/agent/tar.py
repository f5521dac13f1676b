"""Write a tar as a stream: outputs on a node, uploads on the learner's computer."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Iterator
from itertools import chain

PIECE = 1 << 18


def write_tar(members: Iterable[tuple[tarfile.TarInfo, Iterable[bytes]]]) -> Iterator[bytes]:
    """Yield a tar of these members in pieces of a suitable size. A member is requested only after earlier members were read.

    The content of each member must have exactly the size in its header.
    """
    buffer = bytearray()
    for member, content in members:
        header = member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        for piece in chain((header,), content, (bytes(-member.size % tarfile.BLOCKSIZE),)):
            buffer += piece
            if len(buffer) >= PIECE:
                yield bytes(buffer)
                buffer.clear()
    yield bytes(buffer) + bytes(2 * tarfile.BLOCKSIZE)


def make_member(name: str, size: int, info: os.stat_result | None = None) -> tarfile.TarInfo:
    """Return the header of a file.

    `info`: the file's status. With it, the header also says whether the file is executable and when it was changed, to the
    nanosecond.
    """
    member = tarfile.TarInfo(name)
    member.size = size
    if info is not None:
        member.mode = 0o755 if info.st_mode & 0o100 else 0o644
        if info.st_mtime_ns >= 0:
            seconds, nanoseconds = divmod(info.st_mtime_ns, 10**9)
            member.pax_headers = {"mtime": f"{seconds}.{nanoseconds:09d}"}
    return member
