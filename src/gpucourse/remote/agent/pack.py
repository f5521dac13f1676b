"""Sending a run's results: a tar of plain files, with a listing first and a closing word last."""

from __future__ import annotations

import glob
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator
from typing import IO

from gpucourse.remote.agent.job import Job, JobRefused, mapping, words

LISTING, CLOSING = "listing.json", "closing.json"
"""The first and the last member. Files lie between, under `files/`."""

EVERYTHING = "**"
"""The pattern for all of the work folder: walked and not matched, for matching follows links, round and round."""

MOST_FILES = 2000
"""So many results of one node are taken; a script that writes more packs them."""


def pack(job: Job, wanted: dict[str, object], out: IO[bytes]) -> None:
    """Write the tar. `wanted`: `globs` in the work folder, `max_bytes` for one file, `output_limit` for all, `have`:
    what the client has already as name -> [bytes, mtime in ns]. Links are not followed; what is left out is listed with the
    reason."""
    if not job.has("job.json"):
        raise JobRefused(f"there is no run {job.run_id} on this node", "absent")
    have, limit = mapping(wanted.get("have", {})), int(str(wanted["max_bytes"]))
    offers, left = _offers(job, words(wanted.get("globs", [])))
    in_all = int(str(wanted["output_limit"]))
    room = in_all - sum(_bytes_of_same(path, have.get(name)) for name, path in offers.items())
    sending: list[tuple[str, str]] = []
    same: list[str] = []
    for name, path in offers.items():
        info = os.lstat(path)
        reason = _not_sent(info, limit)
        if reason is not None:
            left.append({"name": name, "reason": reason, "bytes": info.st_size})
        elif have.get(name) == [info.st_size, info.st_mtime_ns]:
            same.append(name)
        elif info.st_size > room:
            reason = f"with it the outputs of this node were more than {_size(in_all)} (output_limit)"
            left.append({"name": name, "reason": reason, "bytes": info.st_size})
        else:
            room -= info.st_size
            sending.append((name, path))
    changed: list[str] = []
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 16) as tar:
        spelled = [dict(entry, name=_spell_out(str(entry["name"]))) for entry in left]
        listing = {"files": len(sending), "left": spelled, "same": same, "state": job.state(), "env": job.read("env.json")}
        _add_json(tar, LISTING, listing)
        for name, path in sending:
            if not _add_file(tar, name, path):
                changed.append(_spell_out(name))
        _add_json(tar, CLOSING, {"changed": changed})


def _offers(job: Job, globs: list[str]) -> tuple[dict[str, str], list[dict[str, object]]]:
    """What may be sent: everything in outputs/, then what the globs match in work/ and outputs/ does not have.

    What was uploaded and is as it was, and what Python keeps of its modules, is no result.
    """
    brought = _read_upload_times(job)
    left: list[dict[str, object]] = []
    offers: dict[str, str] = {}
    for name, path in _walk(job.path("outputs"), ""):
        if len(offers) >= MOST_FILES:
            return offers, [_too_many(name)]
        offers[name] = path
    work = os.path.realpath(job.path("work"))
    for pattern in globs:
        if pattern.startswith("/") or ".." in pattern.split("/"):
            left.append({"name": pattern, "reason": "the pattern leads out of the work folder", "bytes": 0})
            continue
        matching = [work] if pattern == EVERYTHING else glob.glob(os.path.join(glob.escape(work), pattern), recursive=True)
        for path in sorted(matching):
            place = "" if os.path.normpath(path) == work else os.path.relpath(path, work)
            for name, inner in _walk(path, place) if _is_folder(path) else [(place, path)]:
                if name in offers or "__pycache__" in name.split("/") or _is_unchanged(inner, brought.get(name)):
                    continue
                if max(len(offers), len(left)) >= MOST_FILES:
                    return offers, [*left, _too_many(name)]
                if os.path.join(os.path.realpath(os.path.dirname(inner)), "").startswith(os.path.join(work, "")):
                    offers.setdefault(name, inner)
                else:
                    left.append({"name": name, "reason": "a link on the way leads out of the work folder", "bytes": 0})
    return offers, left


def _bytes_of_same(path: str, known: object) -> int:
    """The size of a file that the client has as it is; 0 for every other."""
    info = os.lstat(path)
    return info.st_size if known == [info.st_size, info.st_mtime_ns] else 0


def _too_many(name: str) -> dict[str, object]:
    return {"name": name, "reason": f"more than {MOST_FILES} files: no more are taken", "bytes": 0}


def _read_upload_times(job: Job) -> dict[str, float]:
    """When each uploaded file was laid out, by its name."""
    asked = job.read("job.json") or {}
    files = asked.get("files")
    laid_out = os.path.getmtime(job.path("started")) if job.has("started") else 0.0
    return {str(mapping(file)["name"]): laid_out for file in files} if isinstance(files, list) else {}


def _is_unchanged(path: str, laid_out: float | None) -> bool:
    return laid_out is not None and os.lstat(path).st_mtime <= laid_out


def _walk(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Everything below a folder but folders, by name and path. Links are given and not followed; any depth is walked."""
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


def _spell_out(name: str) -> str:
    """A name whose bytes are not UTF-8, with these spelled out: JSON cannot say them."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(os.lstat(path).st_mode)


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


def _add_file(tar: tarfile.TarFile, name: str, path: str) -> bool:
    """Add one file; False where it shrank or vanished while it was read (its place is then filled with zeros)."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            return False
        member = tarfile.TarInfo("files/" + name)
        member.size = info.st_size
        member.mode = 0o755 if info.st_mode & 0o100 else 0o644
        member.pax_headers = {"GPUCOURSE.mtime_ns": str(info.st_mtime_ns)}
        source = _Exactly(file, info.st_size)
        tar.addfile(member, source)
        after = os.fstat(handle)
        return not source.short and (after.st_size, after.st_mtime_ns) == (info.st_size, info.st_mtime_ns)


def _add_json(tar: tarfile.TarFile, name: str, data: object) -> None:
    content = json.dumps(data).encode()
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


class _Exactly:
    """Reads a file to the size that was promised, with zeros where it got shorter meanwhile."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file, self.left, self.short = file, size, False

    def read(self, count: int = -1) -> bytes:
        count = self.left if count < 0 else min(count, self.left)
        data = self.file.read(count)
        if len(data) < count:
            self.short = True
            data += bytes(count - len(data))
        self.left -= count
        return data
