"""Bringing outputs home. What a node sends is taken as a stranger's parcel: only plain files, only inside the run's folder."""

from __future__ import annotations

import errno
import json
import os
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, cast

from gpucourse.errors import StorageError, UnreachableError
from gpucourse.model.event import NodeEvent, Watcher
from gpucourse.model.node import Node
from gpucourse.model.record import OutputFile, Refused
from gpucourse.remote import jobs
from gpucourse.remote.agent.pack import CLOSING, LISTING
from gpucourse.remote.fleet import Fleet, combined
from gpucourse.units import format_bytes
from gpucourse.workspace.files import writing
from gpucourse.workspace.paths import RunPaths

_TRIES = 3
_NOTE_LIMIT = 64 << 20
_PIECE = 1 << 20
_BAD_NAME = {errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL}


@dataclass(frozen=True, kw_only=True)
class Missed:
    """A node whose outputs are not home, and why."""

    node: str
    reason: str


@dataclass(kw_only=True)
class Home:
    """What came home, what was refused and why, the nodes' descriptions of themselves, and the nodes that did not answer."""

    outputs: list[OutputFile] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)
    unreachable: list[Missed] = field(default_factory=list)


def collect(fleet: Fleet, run_id: str, globs: Sequence[str], paths: RunPaths, max_bytes: int, watcher: Watcher) -> Home:
    """Bring home everything in the run's `outputs/` and what `globs` match in its work folder, from every node at once.

    What is home already and unchanged does not travel again. A file has its name here only when it is complete. Raises
    StorageError where the disk here is full; a node that cannot be reached is told in the result.
    """
    lock = threading.Lock()

    def fetch(node: Node) -> Home:
        began = time.monotonic()
        home = _persistently(fleet, node, run_id, globs, paths, max_bytes)
        size = format_bytes(sum(output.bytes for output in home.outputs))
        with lock:
            detail = f"{len(home.outputs)} files, {size}"
            watcher(NodeEvent(node=node.name, step="collect", ok=True, seconds=time.monotonic() - began, detail=detail))
        return home

    whole = Home()
    outcomes = fleet.each_node(fetch)
    if full := [outcome for outcome in outcomes if isinstance(outcome.error, StorageError)]:
        raise combined(full, of=len(outcomes))
    for outcome in outcomes:
        if outcome.error is not None:
            whole.unreachable.append(Missed(node=outcome.node.name, reason=outcome.error.what))
            watcher(NodeEvent(node=outcome.node.name, step="collect", ok=False, seconds=0.0, detail=outcome.error.what))
            continue
        home = outcome.take()
        whole.outputs += home.outputs
        whole.refused += home.refused
        whole.environments |= home.environments
    return whole


def unpack(node: str, stream: IO[bytes], paths: RunPaths, max_bytes: int) -> Home:
    """Take one node's tar. Raises UnreachableError where it ends early, StorageError where the disk is full."""
    return _Unpacking(node, paths, max_bytes).take(stream)


def _persistently(fleet: Fleet, node: Node, run_id: str, globs: Sequence[str], paths: RunPaths, max_bytes: int) -> Home:
    for left in reversed(range(_TRIES)):
        try:
            wanted = {"globs": list(globs), "max_bytes": max_bytes, "have": _have(paths.node_outputs(node.name))}
            with jobs.streamed(fleet.link(node), "pack", run_id, stdin=json.dumps(wanted).encode()) as pieces:
                return unpack(node.name, cast("IO[bytes]", _Reader(pieces)), paths, max_bytes)
        except UnreachableError:
            if not left:
                raise
    raise AssertionError


class _Unpacking:
    """One node's tar on its way into the run's folder."""

    def __init__(self, node: str, paths: RunPaths, max_bytes: int) -> None:
        self._node, self._run, self._root, self._max_bytes = node, paths.folder, paths.node_outputs(node), max_bytes
        self._home = Home()
        self._taken: dict[str, OutputFile] = {}

    def take(self, stream: IO[bytes]) -> Home:
        closed = False
        try:
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in tar:
                    if member.name == LISTING:
                        self._listing(_note(tar, member))
                    elif member.name == CLOSING:
                        self._closing(_note(tar, member))
                        closed = True
                    else:
                        self._file(tar, member)
        except (tarfile.TarError, EOFError, ValueError, KeyError) as error:
            raise UnreachableError(
                f"{self._node}: its outputs arrived damaged ({error}); what was complete before is kept",
                hint="type the command again: only what is missing travels",
            ) from error
        while stream.read(_PIECE):  # to the end, where the exit code is told
            continue
        if not closed:
            raise UnreachableError(f"{self._node}: its outputs ended early; what was complete is kept")
        self._home.outputs = list(self._taken.values())
        return self._home

    def _listing(self, listing: dict[str, Any]) -> None:
        for left in listing["left"]:
            self._refuse(_shown(str(left["name"])), str(left["reason"]))
        for name in listing["same"]:
            self._taken[name] = self._output(self._root / name)
        if isinstance(listing["env"], dict):
            self._home.environments[self._node] = listing["env"]

    def _closing(self, closing: dict[str, Any]) -> None:
        for name in (_shown(str(name)) for name in closing["changed"]):
            if name in self._taken:
                del self._taken[name]
                (self._root / name).unlink(missing_ok=True)
            self._refuse(name, "it changed while it was being read")

    def _file(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = _shown(member.name.removeprefix("files/"))
        if (reason := self._objection(member, name)) is not None:
            self._refuse(name, reason)
            return
        target = self._root / name
        source = tar.extractfile(member)
        if source is None:
            raise tarfile.ReadError(f"{name} has no content")
        try:
            with writing(target, mode=0o755 if member.mode & 0o100 else 0o644) as file:
                while data := source.read(_PIECE):
                    file.write(data)
        except StorageError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError) or cause.errno not in _BAD_NAME:
                raise
            self._refuse(name, f"this computer cannot store a file of that name: {cause.strerror}")
            return
        if (changed := str(member.pax_headers.get("GPUCOURSE.mtime_ns", ""))).isdigit():
            os.utime(target, ns=(int(changed), int(changed)))
        self._taken[name] = self._output(target)

    def _objection(self, member: tarfile.TarInfo, name: str) -> str | None:
        """Why this member is not taken; None where it may be. Makes the folders on its way."""
        parts = name.split("/")
        if not member.name.startswith("files/") or ".." in parts:
            return "its name leads out of the run's folder"
        if any(part in ("", ".") or "\0" in part for part in parts):
            return "its name is not one of a file"
        if member.issym() or member.islnk():
            return f"it is a link (to {_shown(member.linkname)}), and links are not taken"
        if not member.isreg() or member.issparse():
            return "it is not a plain file"
        if member.size > self._max_bytes:
            return f"too large: {format_bytes(member.size)}, the limit for one file is {format_bytes(self._max_bytes)}"
        if name in self._taken:
            return "the node sent two files of that name"
        folder = self._root
        for part in parts[:-1]:
            folder /= part
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                return f"{folder.name} is not a folder here"
        return "a folder has that name here" if (self._root / name).is_dir() else None

    def _output(self, path: Path) -> OutputFile:
        digest = sha256()
        with path.open("rb") as file:
            while data := file.read(_PIECE):
                digest.update(data)
        return OutputFile(
            node=self._node, path=path.relative_to(self._run).as_posix(), bytes=path.stat().st_size, sha256=digest.hexdigest()
        )

    def _refuse(self, name: str, reason: str) -> None:
        self._home.refused.append(Refused(node=self._node, name=name, reason=reason))


class _Reader:
    """The pieces of a stream as something to read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, bytearray()

    def read(self, count: int) -> bytes:
        while len(self._held) < count and (piece := next(self._pieces, None)) is not None:
            self._held += piece
        data = bytes(self._held[:count])
        del self._held[:count]
        return data


def _note(tar: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, Any]:
    source = tar.extractfile(member) if member.isreg() and member.size <= _NOTE_LIMIT else None
    if source is None:
        raise ValueError(f"{member.name} is not a listing")
    found = json.loads(source.read())
    if not isinstance(found, dict):
        raise ValueError(f"{member.name} is not a listing")  # noqa: TRY004  # the content is wrong, not a type of ours
    return found


def _have(root: Path) -> dict[str, list[int]]:
    """Size and time of change of every file that is home already."""
    found: dict[str, list[int]] = {}
    for path in root.rglob("*") if root.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            info = path.stat()
            found[path.relative_to(root).as_posix()] = [info.st_size, info.st_mtime_ns]
    return found


def _shown(name: str) -> str:
    """A name that is not valid UTF-8 comes home with its odd bytes spelled out."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
