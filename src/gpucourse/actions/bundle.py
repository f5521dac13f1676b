"""A bundle: what a learner hands to an instructor, in one file. It holds the evidence itself, so that the points are counted
anew where it is opened, and the digests of its files, so that a change shows.

A bundle is a small workspace in a zip: the runs that count, what is handed in, the quiz, the learner's scripts. What a
reviewer says of it is kept in the reviewer's workspace: the learner can write whatever lies in the bundle or beside it.
"""

from __future__ import annotations

import errno
import hashlib
import lzma
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from gpucourse import __version__
from gpucourse.actions import evidence
from gpucourse.actions.context import Context, ReviewedWork
from gpucourse.actions.grade import grade, who
from gpucourse.errors import ManifestError, UsageError
from gpucourse.model.fields import is_utf8
from gpucourse.model.score import Grade
from gpucourse.units import format_bytes, now_utc
from gpucourse.workspace import runs, seals
from gpucourse.workspace.files import read_record, storing, to_json, writing
from gpucourse.workspace.locate import open_workspace

CARD = "bundle.json"
LARGEST_FILE = 64 << 20
LARGEST = 4 << 30
MOST_FILES = 100_000


@dataclass(frozen=True, kw_only=True)
class Card:
    """`bundle.json`: who made the bundle when and with which program, their points then, the SHA-256 of every file."""

    version: int = 1
    by: str
    made: str
    workspace: str
    gpucourse: str
    grade: Grade
    files: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A bundle that is open. `changed`: files that are not as they were when it was made, or are gone or new; the context
    reads what is in it without them."""

    path: Path
    card: Card
    context: Context
    changed: tuple[str, ...]


def pack(context: Context, path: Path, *, by: str | None = None) -> Card:
    """Make the bundle at `path`. Raises StorageError, and UsageError where there is nothing to hand in yet."""
    files = dict(sorted(_wanted(context)))
    if not any(name.startswith(("runs/", "deliverables/")) for name in files):
        raise UsageError("there is nothing to hand in yet: no run, no answer", hint="gpucourse list")
    kept = {name: source for name, source in files.items() if source.stat().st_size <= LARGEST_FILE and is_utf8(name)}
    card = Card(
        by=by or who(context),
        made=now_utc(),
        workspace=context.workspace.id,
        gpucourse=__version__,
        grade=grade(context),
        files={name: digest for name, source in kept.items() if (digest := seals.sha256(source))},
        left_out=tuple(name.encode(errors="backslashreplace").decode() for name in files if name not in kept),
    )
    # Not strict: where the clock once stood before 1980, which a zip cannot say, its earliest date stands for it.
    with writing(path) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as bundle:
        bundle.writestr(CARD, to_json(card))
        for name, source in kept.items():
            bundle.write(source, name)
    return card


@contextmanager
def opened(context: Context, path: Path) -> Iterator[Opened]:
    """Open a bundle for the block, with the course of this machine. Raises UsageError for a file that is no whole bundle,
    NewerFormat for one of a newer gpucourse."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-bundle-") as folder:
        root = Path(folder)
        with storing(root):
            _unpack(path, root)
        try:
            card = read_record(root / CARD, Card)
        except ManifestError as error:
            raise _not_a_bundle(path, error.what) from error
        if card is None:
            raise _not_a_bundle(path, f"it holds no {CARD}")
        there = {name.relative_to(root).as_posix() for name in root.rglob("*") if name.is_file()} - {CARD}
        wrong = {name for name, digest in card.files.items() if seals.sha256(root / name) != digest} | (there - set(card.files))
        for name in wrong & there:  # nobody knows what stood there: it counts for nothing
            (root / name).unlink()
        inside = Context(
            workspace=open_workspace(root),
            folders=context.folders,
            environ=context.environ,
            watch=context.watch,
            reviewed=ReviewedWork(keeper=context.paths, key=_key(card)),
        )
        yield Opened(path=path, card=card, context=inside, changed=tuple(sorted(wrong)))


def check_reviewer(context: Context, bundle: Opened) -> None:
    """Raises UsageError where this workspace made the bundle: a judgement on it would be the learner's own."""
    if bundle.card.workspace == context.workspace.id:
        raise UsageError(
            f"{bundle.path} was made in this workspace: your own judgement would not be counted",
            hint="an instructor judges it in another workspace: gpucourse --workspace DIR grade --open BUNDLE --review",
        )


def _key(card: Card) -> str:
    """The name under which judgements on a learner's work are kept. A second bundle of the same workspace has the same one; a
    digest, because the id comes from the bundle and is no safe file name."""
    return hashlib.sha256(card.workspace.encode(errors="surrogatepass")).hexdigest()[:32]


def _wanted(context: Context) -> Iterator[tuple[str, Path]]:
    root = context.paths.root
    folders = [context.paths.handed_in, context.paths.exercises]
    for module in context.catalog.modules:
        for exercise in module.exercises:
            counted = [evidence.counting(context, exercise), evidence.answered_for(context, exercise)]
            folders += sorted({runs.files_of(context.paths, record).folder for record in counted if record})
    single = [context.paths.identity, context.paths.quiz]
    found = [path for folder in folders for path in sorted(folder.rglob("*"))] + single
    for path in found:
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            yield path.relative_to(root).as_posix(), path


def _unpack(path: Path, root: Path) -> None:
    """The files of a zip under `root`; nothing that it says about names, links or sizes is believed."""
    try:
        with zipfile.ZipFile(path) as bundle:
            members = [member for member in bundle.infolist() if not member.is_dir()]
            total = sum(member.file_size for member in members)
            if total > LARGEST or len(members) > MOST_FILES:
                raise _not_a_bundle(path, f"{len(members)} files of {format_bytes(total)} are more than a bundle has")
            for member in members:
                name = PurePosixPath(member.filename)
                linked = stat.S_ISLNK(member.external_attr >> 16)
                if name.is_absolute() or ".." in name.parts or "\\" in member.filename or linked:
                    raise _not_a_bundle(path, f"it holds {member.filename!r}, which leads out of it")
                target = root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with bundle.open(member) as source, target.open("wb") as copy:
                    _copy(source, copy, member.file_size, path)
    except OSError as error:
        if error.filename and Path(error.filename) == path:
            raise UsageError(f"{path} cannot be read: {error.strerror}", hint="gpucourse grade --open FILE") from error
        if error.errno in {errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG}:
            raise _not_a_bundle(path, f"names in it cannot stand side by side: {error.strerror}") from error
        raise
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, EOFError, RuntimeError, ValueError) as error:
        raise _not_a_bundle(path, str(error)) from error


def _copy(source: IO[bytes], copy: IO[bytes], size: int, path: Path) -> None:
    left = size
    while data := source.read(min(1 << 20, left + 1)):
        left -= len(data)
        if left < 0:
            raise _not_a_bundle(path, "a file in it is larger than it says")
        copy.write(data)


def _not_a_bundle(path: Path, why: str) -> UsageError:
    return UsageError(f"{path} is not a whole bundle: {why}", hint="ask for it again: gpucourse grade --bundle makes it")
