"""Sending a run's results: a tar of plain files, with a listing first and a closing note last."""

from __future__ import annotations

import glob
import json
import os
import stat
import tarfile
import time
from collections.abc import Iterator
from contextlib import suppress

from gpucourse.remote.agent.frames import MOST_FILES
from gpucourse.remote.agent.job import Job, JobRefused
from gpucourse.remote.agent.store import is_unchanged, read_upload_times

TYPE_CHECKING = False  # `typing` takes two milliseconds to import
if TYPE_CHECKING:
    from typing import IO, Any

LISTING, CLOSING = "listing.json", "closing.json"
"""The first and the last member. The files are between them, under `files/`."""

EVERYTHING = "**"
"""The pattern for all of the work folder: it is walked, not matched, because matching follows links without end."""

MOST_LEFT = 2000
"""The most files that are named as not sent; the rest is counted."""

PACKED = "packed.json"
"""The last request for which everything was sent, and when that began: `prune` uses it."""

_PIECE = 1 << 18


def pack(job: Job, wanted: dict[str, Any], out: IO[bytes]) -> None:
    """Write the tar. `wanted`: `globs` in the work folder, `max_bytes` for one file, `output_limit` for all, `max_files` for
    their number, `have`: what the client has already as name -> [bytes, mtime in ns]. Links are not followed; what is left out
    is listed with the reason."""
    if not job.has("job.json"):
        raise JobRefused(f"there is no run {job.run_id} on this node", "absent")
    began, globs, most = time.time(), wanted["globs"], wanted["max_files"]
    env = job.read("env.json") or None
    offers, left = list_offers(job, globs, most)
    infos = {}
    for name, path in offers.items():
        with suppress(FileNotFoundError):  # a process that still writes there has just removed it
            infos[name] = os.lstat(path)
    sending, same, unsent = _choose(offers, infos, wanted)
    pieces = _Pieces(out)
    listing = {"left": _shorten([*left, *unsent]), "same": same, "state": job.state(), "env": env}
    pieces.write(_note(LISTING, listing))
    changed = [_spell_out(name) for name, path in sending if not _send_file(pieces, name, path)]
    pieces.write(_note(CLOSING, {"changed": changed}) + bytes(2 * tarfile.BLOCKSIZE))
    pieces.flush()
    with suppress(OSError):  # on a full disk, too, outputs are collected; the run then stays on the node
        job.write(PACKED, {"globs": globs, "at": began})


def _choose(
    offers: dict[str, str], infos: dict[str, os.stat_result], wanted: dict[str, Any]
) -> tuple[list[tuple[str, str]], list[str], list[dict[str, Any]]]:
    """Return the files to send, the names of those that the client has unchanged, and what is not sent, with the reason."""
    have, limit, in_all = wanted["have"], wanted["max_bytes"], wanted["output_limit"]
    known = {name for name, info in infos.items() if have.get(name) == [info.st_size, info.st_mtime_ns]}
    room = in_all - sum(infos[name].st_size for name in known)
    sending: list[tuple[str, str]] = []
    same: list[str] = []
    unsent: list[dict[str, Any]] = []
    for name, info in infos.items():
        reason = _not_sent(info, limit)
        if reason is None and name not in known and info.st_size > room:
            reason = f"with it the outputs of this node were more than {_size(in_all)} (output_limit)"
        if reason is not None:
            unsent.append({"name": name, "reason": reason, "bytes": info.st_size})
        elif name in known:
            same.append(name)
        else:
            room -= info.st_size
            sending.append((name, offers[name]))
    return sending, same, unsent


def _shorten(left: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is not sent, as JSON can hold it; beyond MOST_LEFT only how many more there are."""
    spelled = [dict(entry, name=_spell_out(entry["name"])) for entry in left[:MOST_LEFT]]
    if len(left) > MOST_LEFT:
        more = len(left) - MOST_LEFT
        spelled.append({"name": f"{more} more files", "reason": "they are not sent either; too many to name", "bytes": 0})
    return spelled


def list_offers(job: Job, globs: list[str], max_files: int = MOST_FILES) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return what may be sent: everything in outputs/, then what the globs match in work/ and outputs/ does not have; and what
    may not be sent.

    An uploaded file that is unchanged, and what Python keeps of its modules, are no results; nor is a link to what is sent
    under its own name.
    """
    brought = read_upload_times(job)
    work = os.path.realpath(job.path("work"))
    whole = [os.path.realpath(job.path("outputs")), *([work] if EVERYTHING in globs else [])]
    left: list[dict[str, Any]] = []
    offers: dict[str, str] = {}
    for name, path in walk(job.path("outputs"), ""):
        if len(offers) >= max_files:
            return offers, [_too_many(name, max_files)]
        if not _leads_into(path, whole):
            offers[name] = path
    for pattern in globs:
        if pattern.startswith("/") or ".." in pattern.split("/"):
            left.append({"name": pattern, "reason": "the pattern leads out of the work folder", "bytes": 0})
            continue
        matching = [work] if pattern == EVERYTHING else glob.glob(os.path.join(glob.escape(work), pattern), recursive=True)
        for path in sorted(matching):
            place = "" if os.path.normpath(path) == work else os.path.relpath(path, work)
            for name, inner in walk(path, place) if _is_folder(path) else [(place, path)]:
                if name in offers or "__pycache__" in name.split("/") or is_unchanged(inner, brought.get(name)):
                    continue
                if _leads_into(inner, whole):
                    continue
                if max(len(offers), len(left)) >= max_files:
                    return offers, [*left, _too_many(name, max_files)]
                if os.path.join(os.path.realpath(os.path.dirname(inner)), "").startswith(os.path.join(work, "")):
                    offers.setdefault(name, inner)
                else:
                    left.append({"name": name, "reason": "a link on the way leads out of the work folder", "bytes": 0})
    return offers, left


def _too_many(name: str, most: int) -> dict[str, Any]:
    return {"name": name, "reason": f"more than {most} files: no more are taken", "bytes": 0}


def walk(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield everything below a folder except folders, by name and path. Links are listed and not followed; any depth is
    walked."""
    waiting = [(folder, prefix)]
    while waiting:
        folder, prefix = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            name = os.path.join(prefix, entry.name)
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, name))
            else:
                yield name, entry.path


def _leads_into(path: str, folders: list[str]) -> bool:
    """Return whether it is a link to something in one of these folders."""
    if not os.path.islink(path) or not os.path.exists(path):
        return False
    return any(os.path.join(os.path.realpath(path), "").startswith(os.path.join(folder, "")) for folder in folders)


def _spell_out(name: str) -> str:
    """Return a name with those bytes escaped that are not UTF-8: JSON cannot hold them."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_folder(path: str) -> bool:
    """Return whether it is a folder, and not a link to one; False if it has just vanished."""
    return os.path.isdir(path) and not os.path.islink(path)


def _not_sent(info: os.stat_result, limit: int) -> str | None:
    if stat.S_ISLNK(info.st_mode):
        return "it is a link, and links are not followed"
    if not stat.S_ISREG(info.st_mode):
        return "it is not a plain file"
    if info.st_size > limit:
        return f"too large: {_size(info.st_size)}, the limit for one file is {_size(limit)}"
    return None


def _size(count: int) -> str:
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


class _Pieces:
    """Writes to `out` in pieces of a good size."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out, self._held = out, bytearray()

    def write(self, data: bytes) -> None:
        if len(data) >= _PIECE:  # so that a piece of a large file is not copied again
            self.flush()
            self._out.write(data)
            return
        self._held += data
        if len(self._held) >= _PIECE:
            self.flush()

    def flush(self) -> None:
        self._out.write(self._held)
        self._held = bytearray()


def _send_file(pieces: _Pieces, name: str, path: str) -> bool:
    """Send one file; return False if it shrank, grew or vanished while it was read (zeros then fill it up to its size)."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            return False
        pieces.write(_make_header("files/" + name, info))
        left = info.st_size
        while left:
            data = os.read(handle, min(left, _PIECE))
            left -= len(data)
            pieces.write(data)
            if not data:
                break
        whole = not left
        while left:
            zeros = bytes(min(left, _PIECE))
            left -= len(zeros)
            pieces.write(zeros)
        pieces.write(bytes(-info.st_size % tarfile.BLOCKSIZE))
        after = os.fstat(handle)
        return whole and (after.st_size, after.st_mtime_ns) == (info.st_size, info.st_mtime_ns)
    finally:
        os.close(handle)


def _make_header(name: str, info: os.stat_result) -> bytes:
    """Return what comes before the content of a file in a tar, with the nanoseconds of its last change."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = info.st_size, 0o755 if info.st_mode & 0o100 else 0o644
    if info.st_mtime_ns >= 0:
        seconds, rest = divmod(info.st_mtime_ns, 10**9)
        member.pax_headers = {"mtime": f"{seconds}.{rest:09d}"}
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _note(name: str, data: object) -> bytes:
    content = json.dumps(data).encode()
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return member.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)
