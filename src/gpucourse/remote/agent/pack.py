"""Send a run's results: a tar of plain files that begins with a listing and ends with a closing record."""

from __future__ import annotations

import glob
import json
import os
import stat
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import IO, Any, Tuple

from gpucourse.remote.agent.job import Job, JobRefused
from gpucourse.remote.agent.store import is_unchanged, read_upload_times
from gpucourse.remote.agent.tar import PIECE, make_member, write_tar

Refusal = Tuple[str, str]
"""A file that is not sent, and the reason."""

MAX_FILES = 20_000
"""The maximum number of result files that one node sends. A script that writes more has to pack them."""

LISTING, CLOSING = "listing.json", "closing.json"
"""The first and the last member. The files are between them, under `files/`."""

EVERYTHING = "**"
"""The pattern for the whole work folder. The folder is then walked, not matched, because matching follows links without end."""

MAX_NAMED = 2000
"""The maximum number of files to list by name as not sent. Any others are only counted."""

PACKED = "packed.json"
"""The file with the last request that was completely fulfilled, and the time at which it began. `prune` reads this file."""


def pack(job: Job, request: dict[str, Any], out: IO[bytes]) -> None:
    """Write the tar to `out`. Links are not followed, and files that are left out are listed with the reason.

    These are the members of `request`:

    `globs`: patterns in the work folder.
    `max_bytes`: the limit for one file.
    `output_limit`: the limit for all files, in bytes.
    `max_files`: the limit for their number.
    `have`: the files that the client already has, as name -> [bytes, mtime in ns].
    """
    if not job.has("job.json"):
        raise JobRefused(f"there is no run {job.run_id} on this node", "absent")
    start_time = time.time()
    offers, refusals = list_offers(job, request["globs"], request["max_files"])
    infos = {}
    for name, path in offers.items():
        with suppress(FileNotFoundError):  # a process that still writes there has just removed it
            infos[name] = os.lstat(path)
    names, same, unsent = _choose(infos, request)
    listing = {"refused": _shorten([*refusals, *unsent]), "same": same, "env": job.read("env.json") or None}
    for piece in write_tar(_read_members(listing, {name: (offers[name], infos[name].st_size) for name in names})):
        out.write(piece)
    out.flush()
    with suppress(OSError):  # outputs are collected even if the disk is full; the run then stays on the node
        job.write(PACKED, {"globs": request["globs"], "at": start_time})


def _choose(infos: dict[str, os.stat_result], request: dict[str, Any]) -> tuple[list[str], list[str], list[Refusal]]:
    """Return the names of the files to send, the names of unchanged files that the client already has, and the files that are
    not sent, with the reasons."""
    have, output_limit = request["have"], request["output_limit"]
    unchanged = {name for name, info in infos.items() if have.get(name) == [info.st_size, info.st_mtime_ns]}
    room = output_limit - sum(infos[name].st_size for name in unchanged)
    names: list[str] = []
    same: list[str] = []
    unsent: list[Refusal] = []
    for name, info in infos.items():
        reason = _find_objection(info, request["max_bytes"])
        if reason is None and name not in unchanged and info.st_size > room:
            reason = f"with it, the outputs of this node would exceed {_format_size(output_limit)} (output_limit)"
        if reason is not None:
            unsent.append((name, reason))
        elif name in unchanged:
            same.append(name)
        else:
            room -= info.st_size
            names.append(name)
    return names, same, unsent


def _shorten(refusals: list[Refusal]) -> list[Refusal]:
    """Return the files that are not sent, in a form for JSON. Beyond MAX_NAMED, return only their number."""
    shortlist = [(_spell_out(name), reason) for name, reason in refusals[:MAX_NAMED]]
    if len(refusals) > MAX_NAMED:
        unnamed_count = len(refusals) - MAX_NAMED
        shortlist.append((f"{unnamed_count} more files", "they are not sent either; too many to name"))
    return shortlist


def list_offers(job: Job, globs: list[str], max_files: int = MAX_FILES) -> tuple[dict[str, str], list[Refusal]]:
    """Return the files that may be sent, as name -> path, and the files that may not.

    All files in outputs/ may be sent, and files in work/ that match the globs. Unchanged uploads and the bytecode of modules
    are not results, nor is a link to a file that is sent under its own name.
    """
    outputs, work = os.path.realpath(job.path("outputs")), os.path.realpath(job.path("work"))
    sent_folders = [outputs, work] if EVERYTHING in globs else [outputs]
    bad_patterns = [pattern for pattern in globs if pattern.startswith("/") or ".." in pattern.split("/")]
    refusals = [(pattern, "the pattern leads out of the work folder") for pattern in bad_patterns]
    matches = _list_results(job, work, [pattern for pattern in globs if pattern not in bad_patterns])
    offers: dict[str, str] = {}
    for name, path in chain(walk(outputs, ""), matches):
        if name in offers or _leads_into(path, sent_folders):
            continue
        if max(len(offers), len(refusals)) >= max_files:
            refusals.append((name, f"more than {max_files} files: no more are sent"))
            break
        if path.startswith(os.path.join(outputs, "")) or _is_below(os.path.dirname(path), work):
            offers[name] = path
        else:
            refusals.append((name, "a link on the way leads out of the work folder"))
    return offers, refusals


def _list_results(job: Job, work: str, globs: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of every file that matches the globs and that the run made or changed."""
    upload_times = read_upload_times(job)
    for pattern in globs:
        for name, path in _match(work, pattern):
            if "__pycache__" not in name.split("/") and not is_unchanged(path, upload_times.get(name)):
                yield name, path


def _match(work: str, pattern: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of every file that matches a pattern, and of every file in a folder that matches it."""
    whole = pattern == EVERYTHING
    for path in [work] if whole else sorted(glob.glob(os.path.join(glob.escape(work), pattern), recursive=True)):
        name = os.path.relpath(path, work)
        if os.path.isdir(path) and not os.path.islink(path):
            yield from walk(path, "" if name == "." else name)
        else:
            yield name, path


def walk(folder: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of everything below a folder, except folders. Links are listed but not followed."""
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
    """Return whether the path is a link that leads into one of these folders."""
    return os.path.islink(path) and os.path.exists(path) and any(_is_below(path, folder) for folder in folders)


def _is_below(path: str, folder: str) -> bool:
    """Return whether a path leads to that folder, or to anything in it."""
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(folder, ""))


def _spell_out(name: str) -> str:
    """Escape every byte of a name that is not valid UTF-8, because JSON cannot contain such bytes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _find_objection(info: os.stat_result, limit: int) -> str | None:
    if stat.S_ISLNK(info.st_mode):
        return "it is a link, and links are not followed"
    if not stat.S_ISREG(info.st_mode):
        return "it is not a plain file"
    if info.st_size > limit:
        return f"too large: {_format_size(info.st_size)}, the limit for one file is {_format_size(limit)}"
    return None


def _format_size(count: int) -> str:
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


def _read_members(listing: object, files: dict[str, tuple[str, int]]) -> Iterator[tuple[tarfile.TarInfo, Iterable[bytes]]]:
    """Yield the listing, each file, and a closing record that lists the files that have changed since.

    `files`: each file's path and size, by its name.
    """
    changed_names: list[str] = []
    yield _make_note(LISTING, listing)
    for name, (path, size) in files.items():
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            changed_names.append(name)
            continue
        try:
            info = os.fstat(handle)
            is_same = stat.S_ISREG(info.st_mode) and info.st_size == size
            if is_same:
                yield make_member("files/" + name, size, info), _read_exactly(handle, size)
            new_info = os.fstat(handle)
            if not is_same or (new_info.st_size, new_info.st_mtime_ns) != (size, info.st_mtime_ns):
                changed_names.append(name)
        finally:
            os.close(handle)
    yield _make_note(CLOSING, [_spell_out(name) for name in changed_names])


def _read_exactly(handle: int, size: int) -> Iterator[bytes]:
    """Yield exactly `size` bytes of a file. If the file has become shorter, zeros replace the missing bytes."""
    remaining = size
    while remaining:
        data = os.read(handle, min(remaining, PIECE)) or bytes(min(remaining, PIECE))
        remaining -= len(data)
        yield data


def _make_note(name: str, data: object) -> tuple[tarfile.TarInfo, Iterable[bytes]]:
    content = json.dumps(data).encode()
    return make_member(name, len(content)), (content,)
