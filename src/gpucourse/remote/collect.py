"""Bringing outputs home. Nothing that a node sends is believed: only plain files are taken, only into the run's folder."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from gpucourse.errors import GpucourseError, NodeUntrusted, StorageError, UnreachableError
from gpucourse.model.event import NodeEvent, Watcher
from gpucourse.model.node import Node
from gpucourse.model.record import OutputFile, RefusedFile
from gpucourse.outside import OutsideError
from gpucourse.outside.archives import TarMember, TarReader
from gpucourse.outside.documents import parse_typed
from gpucourse.outside.files import file_inside
from gpucourse.outside.names import check_known_name, printable, relative_name
from gpucourse.remote import answers, jobs
from gpucourse.remote.agent.pack import CLOSING, LISTING, MOST_FILES
from gpucourse.remote.disk_space import DiskSpace
from gpucourse.remote.exchange import Silent
from gpucourse.remote.fleet import Fleet, combine_errors
from gpucourse.remote.patience import COLLECT_S, Patience
from gpucourse.storage import writing
from gpucourse.units import format_bytes
from gpucourse.workspace.files import refuse_links
from gpucourse.workspace.paths import RunPaths

T = TypeVar("T")

_TRIES = 3
_NOTE_BYTES, _NOTE_ITEMS = 8 << 20, 100_000
"""The longest listing: names of MOST_FILES files, and of as many that are not sent."""
_MOST_LEFT = 2 * MOST_FILES
OUTPUT_LIMIT = 10 << 30
"""So much of one node's outputs is taken in all, where no setting says otherwise."""
_BESIDE = 4 * _NOTE_BYTES
"""What a tar holds beside its files, in bytes: two notes, and the headers."""
_AFTER_THE_END = 1 << 20
_PIECE = 1 << 20
_BAD_NAME = {errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL}
_LATEST_NS = 1 << 62


@dataclass(kw_only=True)
class _UnsentFile:
    name: str
    reason: str


@dataclass(kw_only=True)
class _Listing:
    """What comes first: what is not sent and why, what is here already, the node's description of itself."""

    left: list[_UnsentFile]
    same: list[str]
    env: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        answers.within(len(self.left), 0, _MOST_LEFT, "the number of files that are not sent")
        answers.within(len(self.same), 0, MOST_FILES, "the number of files that are here already")
        self.env = answers.environment(self.env)


@dataclass(kw_only=True)
class _Closing:
    """What comes last: the files that changed while they were read."""

    changed: list[str]


@dataclass(frozen=True, kw_only=True)
class MissingOutputs:
    """A node whose outputs are not collected, and why."""

    node: str
    error: GpucourseError


@dataclass(kw_only=True)
class Home:
    """Results, what was refused and why, the nodes' descriptions of themselves, and the nodes that did not answer."""

    outputs: list[OutputFile] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)
    unreachable: list[MissingOutputs] = field(default_factory=list)


def collect(
    fleet: Fleet,
    run_id: str,
    globs: Sequence[str],
    paths: RunPaths,
    max_bytes: int,
    watcher: Watcher,
    *,
    output_limit: int = OUTPUT_LIMIT,
    until: float | None = None,
) -> Home:
    """Bring home everything in the run's `outputs/` and what `globs` match in its work folder, from every node at once.

    What is here already and unchanged is not sent again. A file has its name here only when it is complete. `max_bytes`
    is the limit for one file, `output_limit` for all of a node: what is beyond is refused by name, in the result. Raises
    StorageError before the disk here is full; a node that cannot be reached, that sends too slowly (see `patience`), or that
    sends what cannot be true is named in the result. `until`: the time (by the monotonic clock) at which this ends in any case.
    """
    lock, disk = threading.Lock(), DiskSpace()

    def fetch(node: Node) -> Home:
        began = time.monotonic()
        home = _persistently(fleet, node, run_id, globs, paths, max_bytes, until, output_limit, disk)
        size = format_bytes(sum(output.bytes for output in home.outputs))
        with lock:
            detail = f"{len(home.outputs)} files, {size}"
            watcher(NodeEvent(node=node.name, step="collect", ok=True, seconds=time.monotonic() - began, detail=detail))
        return home

    whole = Home()
    outcomes = fleet.each_node(fetch)
    if full := [outcome for outcome in outcomes if isinstance(outcome.error, StorageError)]:
        raise combine_errors(full, of=len(outcomes))
    for outcome in outcomes:
        if outcome.error is not None:
            whole.unreachable.append(MissingOutputs(node=outcome.node.name, error=outcome.error))
            watcher(NodeEvent(node=outcome.node.name, step="collect", ok=False, seconds=0.0, detail=outcome.error.what))
            continue
        home = outcome.take()
        whole.outputs += home.outputs
        whole.refused += home.refused
        whole.environments |= home.environments
    return whole


def unpack(
    node: str,
    stream: IO[bytes],
    paths: RunPaths,
    max_bytes: int,
    *,
    have: Mapping[str, Sequence[int]] = {},
    output_limit: int = OUTPUT_LIMIT,
    disk: DiskSpace | None = None,
) -> Home:
    """Take one node's tar. `have`: size and time of change of the files that were offered as here already. `max_bytes` and
    `output_limit` as in `collect`.

    Raises NodeUntrusted where it ends early, is damaged, or holds what was not asked for (what was complete before is kept);
    StorageError before the disk is full.
    """
    unpacking = _Unpacking(node, paths, max_bytes, have, output_limit, disk or DiskSpace())
    try:
        return unpacking.take(stream)
    except OutsideError as error:
        raise answers.make_untrusted_error(node, "what it sent of its outputs", error) from error


def _persistently(
    fleet: Fleet,
    node: Node,
    run_id: str,
    globs: Sequence[str],
    paths: RunPaths,
    max_bytes: int,
    until: float | None,
    output_limit: int,
    disk: DiskSpace,
) -> Home:
    for left in reversed(range(_TRIES)):
        try:
            refuse_links(paths.node_outputs(node.name), paths.folder)
            have = _have(paths.node_outputs(node.name))
            limits = {"max_bytes": max_bytes, "output_limit": output_limit}
            wanted = json.dumps({"globs": list(globs), "have": have, **limits}).encode()
            patience = Patience(f"{node.label}: collecting its outputs", COLLECT_S, until=until)
            with jobs.stream_verb(fleet.link(node), "pack", run_id, stdin=wanted) as pieces:
                stream = cast("IO[bytes]", _StreamReader(patience.watch(pieces)))
                return unpack(node.name, stream, paths, max_bytes, have=have, output_limit=output_limit, disk=disk)
        except (NodeUntrusted, Silent):
            raise
        except UnreachableError:
            if not left or (until is not None and time.monotonic() >= until):
                raise
    raise AssertionError


class _Unpacking:
    """One node's tar on its way into the run's folder."""

    def __init__(
        self, node: str, paths: RunPaths, max_bytes: int, have: Mapping[str, Sequence[int]], output_limit: int, disk: DiskSpace
    ) -> None:
        self._node, self._run, self._root, self._max_bytes = node, paths.folder, paths.node_outputs(node), max_bytes
        self._have, self._output_limit, self._disk = have, output_limit, disk
        self._home = Home()
        self._taken: dict[str, OutputFile] = {}
        self._sent: set[str] = set()

    def take(self, stream: IO[bytes]) -> Home:
        tar = TarReader(
            stream.read, max_members=MOST_FILES + 2, max_total=2 * self._output_limit + _BESIDE
        )  # files may have grown
        members = iter(tar)
        first = next(members, None)
        if first is None or first.name != LISTING:
            raise OutsideError("the tar does not begin with its listing")
        self._listing(_note(tar, first, _Listing))
        for member in members:
            if member.name == CLOSING:
                self._closing(_note(tar, member, _Closing))
                break
            self._file(tar, member)
        else:
            raise OutsideError("the tar has no end of its own")
        if next(members, None) is not None:
            raise OutsideError("the tar goes on after its end")
        _read_to_the_end(stream)  # the exit code comes at the end
        self._home.outputs = list(self._taken.values())
        return self._home

    def _listing(self, listing: _Listing) -> None:
        for left in listing.left:
            self._refuse(left.name, left.reason)
        for name in listing.same:
            path = file_inside(self._root, check_known_name(name, self._have, "file that was offered as here already:"))
            info = path.stat()
            if [info.st_size, info.st_mtime_ns] != list(self._have[name]):
                raise OutsideError(f"{printable(name, 80)} changed here meanwhile")
            self._taken[name] = self._output(path)
        if listing.env is not None:
            self._home.environments[self._node] = listing.env

    def _closing(self, closing: _Closing) -> None:
        for name in closing.changed:
            if name in self._sent:
                self._sent.remove(name)
                del self._taken[name]
                file_inside(self._root, name).unlink()
            elif name in self._taken:
                raise OutsideError(f"{printable(name, 80)} is told to be as it was and to have changed")
            self._refuse(name, "it changed while it was being read")

    def _file(self, tar: TarReader, member: TarMember) -> None:
        name = member.name.removeprefix("files/")
        if (reason := self._find_objection(member, name)) is not None:
            self._refuse(name, reason)
            return
        target = self._root / name
        self._root.mkdir(parents=True, exist_ok=True)
        try:
            with (
                self._disk.keep_free(self._root, member.size),
                writing(target, mode=0o755 if member.mode & 0o100 else 0o644) as file,
            ):
                for data in tar.pieces():
                    file.write(data)
        except StorageError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError) or cause.errno not in _BAD_NAME:
                raise
            self._refuse(name, f"this computer cannot store a file of that name: {cause.strerror}")
            return
        changed = member.headers.get("GPUCOURSE.mtime_ns", "")
        if len(changed) < 20 and changed.isascii() and changed.isdigit() and int(changed) < _LATEST_NS:
            os.utime(target, ns=(int(changed), int(changed)))
        self._taken[name] = self._output(target)
        self._sent.add(name)

    def _find_objection(self, member: TarMember, name: str) -> str | None:
        """Why this member is not taken; None where it may be. Makes the folders on its way."""
        if not member.name.startswith("files/"):
            return "its name leads out of the run's folder"
        try:
            parts = relative_name(name, max_length=1000, max_parts=100).split("/")
        except OutsideError as error:
            return str(error)
        if member.kind == "link":
            return f"it is a link (to {printable(member.link, 80)}), and links are not taken"
        if member.kind != "file":
            return "it is not a plain file"
        if member.size > self._max_bytes:
            return f"too large: {format_bytes(member.size)}, the limit for one file is {format_bytes(self._max_bytes)}"
        if sum(output.bytes for output in self._taken.values()) + member.size > self._output_limit:
            return f"with it the outputs of this node were more than {format_bytes(self._output_limit)} (output_limit)"
        if name in self._taken:
            return "the node sent two files of that name"
        refuse_links(self._root, self._run)
        folder = self._root
        for part in parts[:-1]:
            folder /= part
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                return f"{folder.name} is not a folder here"
        return "a folder has that name here" if (self._root / name).is_dir() else None

    def _output(self, path: Path) -> OutputFile:
        digest, size = sha256(), 0
        with path.open("rb") as file:
            while data := file.read(_PIECE):
                digest.update(data)
                size += len(data)
        return OutputFile(node=self._node, path=path.relative_to(self._run).as_posix(), bytes=size, sha256=digest.hexdigest())

    def _refuse(self, name: str, reason: str) -> None:
        self._home.refused.append(RefusedFile(node=self._node, name=printable(name), reason=printable(reason)))


class _StreamReader:
    """The pieces of a stream as something to read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, bytearray()

    def read(self, count: int) -> bytes:
        while len(self._held) < count and (piece := next(self._pieces, None)) is not None:
            self._held += piece
        data = bytes(self._held[:count])
        del self._held[:count]
        return data


def _note(tar: TarReader, member: TarMember, kind: type[T]) -> T:
    if member.kind != "file":
        raise OutsideError(f"{member.name} is not a plain file")
    return parse_typed(tar.content(_NOTE_BYTES), kind, max_bytes=_NOTE_BYTES, max_items=_NOTE_ITEMS)


def _read_to_the_end(stream: IO[bytes]) -> None:
    left = _AFTER_THE_END
    while data := stream.read(_PIECE):
        left -= len(data)
        if left < 0:
            raise OutsideError("the tar is followed by more than it announced")


def _have(root: Path) -> dict[str, list[int]]:
    """Size and time of change of every file that is here already."""
    sizes: dict[str, list[int]] = {}
    for path in root.rglob("*") if root.is_dir() else ():
        info = path.lstat()
        if stat.S_ISREG(info.st_mode):
            sizes[path.relative_to(root).as_posix()] = [info.st_size, info.st_mtime_ns]
    return sizes
