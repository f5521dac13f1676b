"""Unpack the tar of one node's outputs. Nothing in it is trusted: only plain files are stored, and only in the run's folder."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from gpucourse.errors import GpucourseError, StorageError
from gpucourse.model.record import OutputFile, RefusedFile
from gpucourse.outside import OutsideError
from gpucourse.outside.archives import TarMember, TarReader
from gpucourse.outside.documents import Meta, parse_typed
from gpucourse.outside.files import file_inside
from gpucourse.outside.names import check_known_name, printable, relative_name
from gpucourse.remote import answers
from gpucourse.remote.agent.pack import CLOSING, LISTING, MAX_FILES, MAX_NAMED
from gpucourse.storage import DiskSpace, FileBatch, make_folder, storing
from gpucourse.workspace.files import refuse_links
from gpucourse.workspace.paths import RunPaths
from gpucourse.workspace.seals import sha256

T = TypeVar("T")

_NOTE_BYTES, _NOTE_ITEMS = 16 << 20, 400_000
"""The limits for a listing. The longest listing names MAX_FILES files that are already here, and the files that are not
sent."""
OUTPUT_LIMIT = 10 << 30
"""The maximum number of bytes of one node's outputs that are stored, unless the settings set another limit."""
_BESIDE = 4 * _NOTE_BYTES
"""The maximum number of bytes that a tar contains besides its files: two notes and the headers."""
_AFTER_THE_END = 1 << 20
_BATCH = 256 << 20
"""After this many bytes, the complete files of a node get their final names. If the program is killed, at most this many
bytes, or one larger file, must be fetched again."""
_BAD_NAME = {errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EEXIST, errno.EISDIR}


@dataclass(kw_only=True)
class _Listing:
    """The first entry of the tar archive.

    `refused`: the files that are not sent, with the reasons.
    `same`: the files that are already here.
    `env`: the node's description of itself.
    """

    refused: Annotated[list[tuple[str, str]], Meta(max_length=2 * MAX_NAMED)]
    same: Annotated[list[str], Meta(max_length=MAX_FILES)]
    env: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.env = answers.environment(self.env)


@dataclass(frozen=True, kw_only=True)
class OutputLimits:
    """The limits for the stored outputs: the bytes of one file, and the bytes and the number of files of one node."""

    max_bytes: int
    output_limit: int = OUTPUT_LIMIT
    max_files: int = MAX_FILES


@dataclass(frozen=True, kw_only=True)
class MissingOutputs:
    """A node whose outputs are not collected, and why."""

    node: str
    error: GpucourseError


@dataclass(kw_only=True)
class CollectedOutputs:
    """The outputs of all nodes.

    `outputs`: the collected files.
    `refused`: the refused files, with the reasons.
    `environments`: the nodes' descriptions of themselves.
    `unreachable`: the nodes that did not answer.
    """

    outputs: list[OutputFile] = field(default_factory=list)
    refused: list[RefusedFile] = field(default_factory=list)
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)
    unreachable: list[MissingOutputs] = field(default_factory=list)


def unpack(
    node: str,
    pieces: Iterable[bytes],
    paths: RunPaths,
    limits: OutputLimits,
    *,
    have: Mapping[str, Sequence[int]] = {},
    disk: DiskSpace | None = None,
) -> CollectedOutputs:
    """Unpack one node's tar, and return the collected outputs.

    `have`: the size and the modification time of each file that the request named as already here.

    Raises NodeUntrusted if the tar ends early, is damaged, or contains something that was not requested. Files that were
    complete before that are kept. Raises StorageError before the disk is full.
    """
    refuse_links(paths.node_outputs(node), paths.folder)
    unpacking = _Unpacking(node, paths, limits, have, disk or DiskSpace())
    try:
        unpacking.take(pieces)
    except OutsideError as error:
        raise answers.make_untrusted_error(node, "the outputs that it sent", error) from error
    finally:
        unpacking.commit()  # complete files are kept, whatever stopped the rest
    return unpacking.collected


class _Unpacking:
    """The state while one node's tar is unpacked into the run's folder."""

    def __init__(
        self, node: str, paths: RunPaths, limits: OutputLimits, have: Mapping[str, Sequence[int]], disk: DiskSpace
    ) -> None:
        self._node, self._run, self._root = node, paths.folder, paths.node_outputs(node)
        self._place = self._root.relative_to(self._run).as_posix()
        self._have, self._limits, self._disk = have, limits, disk
        self._batch = FileBatch(paths.transfer(node))
        self.collected = CollectedOutputs()
        self._taken: dict[str, OutputFile] = {}
        self._sent: set[str] = set()
        self._bytes = 0
        self._folders: set[str] = set()

    def take(self, pieces: Iterable[bytes]) -> None:
        max_total = 2 * self._limits.output_limit + _BESIDE  # files may have grown
        tar = TarReader(pieces, max_members=self._limits.max_files + 2, max_total=max_total)
        members = iter(tar)
        first = next(members, None)
        if first is None or first.name != LISTING:
            raise OutsideError("the tar does not begin with its listing")
        self._listing(_note(tar, first, _Listing))
        for member in members:
            if member.name == CLOSING:
                self._remove_changed(_note(tar, member, list[str]))
                break
            self._file(tar, member)
        else:
            raise OutsideError("the tar has no closing record")
        if next(members, None) is not None:
            raise OutsideError("the tar continues after its end")
        tar.read_rest(_AFTER_THE_END)  # the exit code comes at the end

    def _listing(self, listing: _Listing) -> None:
        for name, reason in listing.refused:
            self._refuse(name, reason)
        for name in listing.same:
            path = file_inside(self._root, check_known_name(name, self._have, "file already present under the name"))
            info = path.stat()
            if [info.st_size, info.st_mtime_ns] != list(self._have[name]):
                raise OutsideError(f"{printable(name, 80)} changed here meanwhile")
            self._keep(name, info.st_size, sha256(path) or "")
        if listing.env is not None:
            self.collected.environments[self._node] = listing.env

    def _remove_changed(self, names: list[str]) -> None:
        for name in names:
            if name in self._sent:
                self._sent.remove(name)
                self._bytes -= self._taken.pop(name).bytes
                self._batch.drop(self._path(name))
            elif name in self._taken:
                raise OutsideError(f"{printable(name, 80)} is reported both as unchanged and as changed")
            self._refuse(name, "it changed while it was being read")

    def _file(self, tar: TarReader, member: TarMember) -> None:
        if member.kind != "file" or not member.name.startswith("files/"):
            raise OutsideError(f"{printable(member.name, 80)} is not a file of the run")
        name = member.name.removeprefix("files/")
        if name in self._taken:
            raise OutsideError(f"it contains two files named {printable(name, 80)}")
        if member.size > self._limits.max_bytes or self._bytes + member.size > self._limits.output_limit:
            raise OutsideError(f"{printable(name, 80)} has {member.size} bytes, more than the limits allow")
        mode = 0o755 if member.mode & 0o100 else 0o644
        try:
            if (reason := self._find_objection(name)) is not None:
                self._refuse(name, reason)
                return
            with self._disk.keep_free(self._run, member.size):
                digest = self._batch.write(self._path(name), tar.pieces(), mode=mode, changed_ns=member.changed_ns)
        except (StorageError, OSError) as error:
            cause = error.__cause__ if isinstance(error, StorageError) else error
            if not isinstance(cause, OSError) or cause.errno not in _BAD_NAME:
                raise
            self._refuse_name(name, cause)
            return
        self._keep(name, member.size, digest)
        self._sent.add(name)
        if self._batch.bytes >= _BATCH:
            self.commit()

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def commit(self) -> None:
        """Give the complete files their names. Refuse files whose names this disk does not accept."""
        for target, error in self._batch.commit().items():
            name = target.removeprefix(self._path(""))
            self._sent.remove(name)
            self._bytes -= self._taken.pop(name).bytes
            self._refuse_name(name, error)
        self.collected.outputs = list(self._taken.values())

    def _keep(self, name: str, size: int, digest: str) -> None:
        self._taken[name] = OutputFile(node=self._node, path=f"{self._place}/{name}", bytes=size, sha256=digest)
        self._bytes += size

    def _find_objection(self, name: str) -> str | None:
        """Make the parent folders of a file. Return why the file is refused, or None if it is accepted."""
        try:
            parts = relative_name(name, max_length=1000, max_parts=100).split("/")
        except OutsideError as error:
            return str(error)
        return self._make_folders(parts[:-1])

    def _make_folders(self, parts: Sequence[str]) -> str | None:
        """Make the parent folders of a file. Return why that is impossible, or None on success."""
        name = "/".join(parts)
        if name in self._folders:
            return None
        for place in range(len(parts) + 1):
            folder = self._root.joinpath(*parts[:place])
            if "/".join(parts[:place]) in self._taken or folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                return f"{folder.name} is not a folder here"
            with storing(folder):
                make_folder(folder)
        self._folders.add(name)
        return None

    def _refuse_name(self, name: str, error: OSError) -> None:
        if error.errno == errno.EISDIR:
            self._refuse(name, "a folder has that name here")
        else:
            self._refuse(name, f"this computer cannot store a file of that name: {error.strerror}")

    def _refuse(self, name: str, reason: str) -> None:
        self.collected.refused.append(RefusedFile(node=self._node, name=printable(name), reason=printable(reason)))


def _note(tar: TarReader, member: TarMember, kind: type[T]) -> T:
    if member.kind != "file":
        raise OutsideError(f"{member.name} is not a plain file")
    return parse_typed(tar.content(_NOTE_BYTES), kind, max_bytes=_NOTE_BYTES, max_items=_NOTE_ITEMS)
