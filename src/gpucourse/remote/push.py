"""Sending files to a node: only what its store lacks; small files in one tar, each big one through its own pipe."""

from __future__ import annotations

import io
import shlex
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from gpucourse.errors import MissingError, UsageError
from gpucourse.model.plan import Upload
from gpucourse.ports import Link
from gpucourse.remote import jobs

HASHED_BELOW = 1 << 20
"""Smaller files are identified by their content, larger ones by size, times of change and name."""

PIPED_FROM = 8 << 20
"""Larger files are sent one by one."""

_PIECE = 1 << 18
_IN_ONE_TAR = 5000  # this many names fit on one command line everywhere
_WHOLE = "whole"
# Done by the shell itself: no program is started for it.
_LIST = (
    "umask 077; cd ./.gpucourse/store 2>/dev/null || { mkdir -p .gpucourse/store && cd ./.gpucourse/store; } && "
    "printf '%s\\n' *"
)
# A tar that was cut between two members looks complete to tar: only the last member shows that it is whole. Blobs get their
# names at the end.
_TAKE = (
    "set -e; umask 077; cd .gpucourse/store; d=$(mktemp -d .in.XXXXXX); trap 'rm -rf \"$d\"' EXIT; "
    f'tar -xf - -C "$d"; rm "$d/{_WHOLE}"; mv -f "$d"/* .'
)


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """One file to send: its name in the work folder, the key of its content, and the content itself if it is small."""

    name: str
    key: str
    size: int
    executable: bool
    source: Path
    content: bytes | None

    def entry(self) -> dict[str, object]:
        """Return what the node needs to put it into the work folder."""
        return {"name": self.name, "key": self.key, "executable": self.executable}


def parcels(uploads: Sequence[Upload]) -> list[Parcel]:
    """Read and hash the files to send, once for all nodes. Raises UsageError for a name that leads out of the work folder."""
    return [_parcel(upload) for upload in uploads]


def push(link: Link, wrapped: Sequence[Parcel]) -> int:
    """Send what the node's store lacks; return how many bytes were sent."""
    by_key = {parcel.key: parcel for parcel in wrapped}
    listed = _do(link, _LIST)
    there = set(listed.decode("ascii", "replace").split())
    lacking = [parcel for key, parcel in by_key.items() if key not in there]
    small = [parcel for parcel in lacking if parcel.size < PIPED_FROM]
    for first in range(0, len(small), _IN_ONE_TAR):
        _do(link, _TAKE, _join_pieces(_tar(small[first : first + _IN_ONE_TAR])))
    for parcel in lacking:
        if parcel.size >= PIPED_FROM:
            send_file(link, parcel.source, f".gpucourse/store/{parcel.key}", size=parcel.size)
    return sum(parcel.size for parcel in lacking)


def send_file(link: Link, local: Path, remote: str, *, size: int | None = None) -> None:
    """Copy one file to `remote` (relative to the home folder, or absolute). It gets its name only when all of it is there."""
    expected = local.stat().st_size if size is None else size
    # A cut connection ends cat's input like the end of the file does: only the size tells them apart.
    line = (
        'mkdir -p "$(dirname "$1")" && cat > "$1.$$" && [ "$(wc -c < "$1.$$")" -eq "$2" ] && mv -f "$1.$$" "$1" '
        '|| { rm -f "$1.$$"; exit 74; }'
    )
    _do(link, shlex.join(["sh", "-c", line, "sh", _safe(remote), str(expected)]), _read(local, expected))


def _parcel(upload: Upload) -> Parcel:
    parts = PurePosixPath(upload.name).parts
    if not parts or upload.name.startswith("/") or ".." in parts or "\0" in upload.name:
        raise UsageError(
            f"'{upload.name}' is not a name inside the work folder", hint="file names there are relative, without .."
        )
    try:
        info = upload.source.stat()
        content = upload.source.read_bytes() if info.st_size < HASHED_BELOW else None
    except OSError as error:
        raise MissingError(
            f"cannot read {upload.source}: {error.strerror}", hint="gpucourse init copies the exercises"
        ) from error
    size = info.st_size if content is None else len(content)
    if content is not None:
        key = f"s-{sha256(content).hexdigest()}"
    else:
        # A program may set the time of the content back (`cp -p`, `tar`), but not that of the inode. A change of the mode, the
        # owner or the links makes a file travel once for nothing; a hash would read every large file at every run.
        times = f"{info.st_mtime_ns}:{info.st_ctime_ns}"
        known = f"{info.st_size}:{times}:{upload.source.resolve()}".encode("utf-8", "surrogateescape")
        key = f"b-{sha256(known).hexdigest()}"
    name = "/".join(parts)
    return Parcel(name=name, key=key, size=size, executable=bool(info.st_mode & 0o100), source=upload.source, content=content)


def _do(link: Link, command: str, stdin: bytes | Iterable[bytes] = b"") -> bytes:
    done = link.run(command, stdin=stdin)
    if not done.ok:
        raise jobs.failure(link.node, "push", done.code, done.stderr)
    return done.stdout


def _tar(wrapped: Sequence[Parcel]) -> Iterator[bytes]:
    """Yield the tar of these blobs, in pieces, with a last member that shows that it is whole."""
    for parcel in wrapped:
        member = tarfile.TarInfo(parcel.key)
        member.size = parcel.size
        yield member.tobuf(tarfile.PAX_FORMAT)
        yield from (parcel.content,) if parcel.content is not None else _read(parcel.source, parcel.size)
        yield bytes(-parcel.size % tarfile.BLOCKSIZE)
    yield tarfile.TarInfo(_WHOLE).tobuf(tarfile.PAX_FORMAT)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _join_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in pieces of a good size."""
    held = io.BytesIO()
    for piece in pieces:
        held.write(piece)
        if held.tell() >= _PIECE:
            yield held.getvalue()
            held = io.BytesIO()
    yield held.getvalue()


def _read(path: Path, size: int) -> Iterator[bytes]:
    """Yield the file's bytes. Raises UsageError if its size is no longer `size`."""
    left = size
    with path.open("rb", buffering=0) as file:
        while left and (data := file.read(min(_PIECE, left))):
            left -= len(data)
            if not left and file.read(1):  # checked before the last piece is sent: after it, the node considers the file whole
                left = -1
                break
            yield data
        if left:
            raise UsageError(f"{path} changed while it was being sent", hint="type the command again when it is complete")


def _safe(remote: str) -> str:
    return f"./{remote}" if remote.startswith("-") else remote
