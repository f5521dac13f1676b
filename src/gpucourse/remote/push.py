"""Send files to a node in one tar. Only files that the node's store lacks are sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tarfile import TarInfo

from gpucourse.errors import MissingError, UsageError
from gpucourse.model.plan import Upload
from gpucourse.ports import Link
from gpucourse.remote import jobs
from gpucourse.remote.agent.tar import PIECE, make_member, write_tar

HASHED_BELOW = 1 << 20
"""Smaller files are identified by their content, larger files by size, times of change and name."""

_WHOLE = "whole"
# The shell itself does this, so no program is started.
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
    """A file to send.

    `name`: its name in the work folder.
    `key`: the key of its content in the node's store.
    `content`: None if the file is large.
    """

    name: str
    key: str
    size: int
    executable: bool
    source: Path
    content: bytes | None

    def entry(self) -> dict[str, object]:
        """Return the fields that the node needs to put the file into the work folder."""
        return {"name": self.name, "key": self.key, "executable": self.executable}


def parcels(uploads: Sequence[Upload]) -> list[Parcel]:
    """Read and hash the files to send, once for all nodes. Raises UsageError if a name leads out of the work folder."""
    return [_parcel(upload) for upload in uploads]


def push(link: Link, wrapped: Sequence[Parcel]) -> int:
    """Send the files that the node's store lacks. Return how many bytes were sent."""
    by_key = {parcel.key: parcel for parcel in wrapped}
    answer = _run(link, _LIST)
    stored_keys = set(answer.decode("ascii", "replace").split())
    lacking = [parcel for key, parcel in by_key.items() if key not in stored_keys]
    if lacking:
        _run(link, _TAKE, write_tar(_read_members(lacking)))
    return sum(parcel.size for parcel in lacking)


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
        # owner or the links causes one needless upload; a hash would have to read every large file for every run.
        times = f"{info.st_mtime_ns}:{info.st_ctime_ns}"
        identity = f"{info.st_size}:{times}:{upload.source.resolve()}".encode("utf-8", "surrogateescape")
        key = f"b-{sha256(identity).hexdigest()}"
    name = "/".join(parts)
    return Parcel(name=name, key=key, size=size, executable=bool(info.st_mode & 0o100), source=upload.source, content=content)


def _run(link: Link, command: str, stdin: bytes | Iterable[bytes] = b"") -> bytes:
    result = link.run(command, stdin=stdin)
    if not result.ok:
        raise jobs.failure(link.node, "push", result.code, result.stderr)
    return result.stdout


def _read_members(lacking: Sequence[Parcel]) -> Iterator[tuple[TarInfo, Iterable[bytes]]]:
    """Yield each blob, and then the member that shows that the tar is complete."""
    for parcel in lacking:
        content = (parcel.content,) if parcel.content is not None else _read(parcel.source, parcel.size)
        yield make_member(parcel.key, parcel.size), content
    yield make_member(_WHOLE, 0), ()


def _read(path: Path, size: int) -> Iterator[bytes]:
    """Yield the file's bytes. Raises UsageError if its size is no longer `size`."""
    remaining = size
    with path.open("rb", buffering=0) as file:
        while remaining and (data := file.read(min(PIECE, remaining))):
            remaining -= len(data)
            yield data
        if remaining or file.read(1):
            raise UsageError(f"{path} changed while it was being sent", hint="type the command again when the file is complete")
