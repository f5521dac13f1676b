"""A bundle: one file that a learner sends to an instructor. It contains the evidence, so that the instructor's computer can
count the points again. It also contains the digests of its files, so that changes are detected.

A bundle is a small workspace in a zip file: the runs that count, the handed-in work, the quiz, and the learner's scripts.
Judgements stay in the reviewer's workspace, because a learner can write anything into a bundle.
"""

from __future__ import annotations

import hashlib
import stat
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from gpucourse import __version__
from gpucourse.context import Context, ReviewedWork
from gpucourse.errors import DamagedFile, NewerFormat, StorageError, UsageError
from gpucourse.learning import evidence
from gpucourse.learning.grade import grade, name_learner
from gpucourse.model.manifest import Exercise
from gpucourse.model.score import Grade
from gpucourse.outside.archives import ZipLimits, unpack_zip
from gpucourse.outside.names import OutsideError, printable, relative_name
from gpucourse.runs.parts import read_part_results
from gpucourse.storage import storing, writing
from gpucourse.units import format_bytes, now_utc
from gpucourse.workspace import runs, seals
from gpucourse.workspace.files import read_record, to_json
from gpucourse.workspace.locate import Workspace, open_workspace
from gpucourse.workspace.paths import WorkspacePaths

CARD = "bundle.json"
LIMITS = ZipLimits(members=20_000, member_bytes=64 << 20, total_bytes=2 << 30)
"""The limits of a bundle. A larger bundle would take too long to open."""

_MAX_SHOWN, _MAX_TEXT = 1000, 300
_OPEN = "name a bundle: gpucourse grade --open FILE, or gpucourse grade --rerun FILE"


@dataclass(frozen=True, kw_only=True)
class Card:
    """`bundle.json`: the learner's name and points, when and with which version the bundle was made, and the SHA-256 of every
    file."""

    version: int = 1
    by: str
    made: str
    workspace: str
    gpucourse: str
    grade: Grade
    files: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def file_count(self) -> int:
        """Return how many files are in the bundle."""
        return len(self.files)


@dataclass(frozen=True, kw_only=True)
class OpenBundle:
    """An open bundle. `changed` lists the files that were changed, removed or added after it was made. The context does not
    contain them."""

    path: Path
    card: Card
    context: Context
    changed: tuple[str, ...]


def pack(context: Context, path: Path, *, by: str | None = None) -> Card:
    """Make the bundle at `path`, and return its card.

    Raises UsageError if there is nothing to hand in yet, and StorageError if the file cannot be written.
    """
    files = dict(sorted(_list_files(context)))
    if not any(name.startswith(("runs/", "deliverables/")) for name in files):
        raise UsageError("there is nothing to hand in yet: no run and no answer", hint="gpucourse list")
    members = {
        name: source for name, source in files.items() if source.stat().st_size <= LIMITS.member_bytes and _is_taken(name)
    }
    _check_size(members)
    card = Card(
        by=by or name_learner(context.settings),
        made=now_utc(),
        workspace=context.workspace.id,
        gpucourse=__version__,
        grade=grade(context),
        files={name: digest for name, source in members.items() if (digest := seals.sha256(source))},
        left_out=tuple(name.encode(errors="backslashreplace").decode() for name in files if name not in members),
    )
    # Not strict: a wrong clock may date a file before 1980. A zip then stores its earliest date, which is in 1980.
    with writing(path) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as bundle:
        bundle.writestr(CARD, to_json(card))
        for name, source in members.items():
            bundle.write(source, name)
    return card


@contextmanager
def open_bundle(context: Context, path: Path) -> Iterator[OpenBundle]:
    """Open a bundle for the duration of the block, and yield it, with this computer's course.

    Raises UsageError if the file is not a complete bundle, or if a newer gpucourse made it.
    """
    with tempfile.TemporaryDirectory(prefix="gpucourse-bundle-") as folder:
        root = Path(folder)
        members = _unpack(path, root) - {CARD}
        card = _read_card(path, root)
        # Only unpacked files are opened: the sender could write any name on the card.
        wrong_names = {name for name in members if seals.sha256(root / name) != card.files.get(name)} | (
            set(card.files) - members
        )
        for name in wrong_names & members:  # its original content is unknown, so it does not count
            (root / name).unlink()
        try:
            workspace = open_workspace(root)
        except DamagedFile as error:
            raise _make_bundle_error(path, f"it does not say which workspace made it: {error.why}") from error
        bundle_context = Context(
            workspace=workspace,
            folders=context.folders,
            environ=context.environ,
            watch=context.watch,
            reviewed=ReviewedWork(keeper=context.paths, key=_key(card)),
        )
        try:
            yield OpenBundle(
                path=path, card=card, context=bundle_context, changed=tuple(printable(name) for name in sorted(wrong_names))
            )
        except NewerFormat as error:
            if not error.path.is_relative_to(root):  # a file of the reviewer's workspace
                raise
            raise UsageError(
                f"{printable(str(path))} contains files of a newer gpucourse than this one", hint=error.hint
            ) from error


def check_reviewer(workspace: Workspace, bundle: OpenBundle) -> None:
    """Check that the bundle comes from another workspace. Raises UsageError if it was made in this workspace, because learners
    must not judge their own work."""
    if bundle.card.workspace == workspace.id:
        raise UsageError(
            f"{bundle.path} was made in this workspace: a review of your own work would not count",
            hint="an instructor judges it in another workspace: "
            "gpucourse init DIR, then gpucourse --workspace DIR grade --open BUNDLE --review",
        )


def _key(card: Card) -> str:
    """Return the name under which judgements of a learner's work are stored. All bundles of a workspace share it. It is a
    digest, because the id in a bundle may not be a safe file name.
    """
    return hashlib.sha256(card.workspace.encode(errors="surrogatepass")).hexdigest()[:32]


def _is_taken(name: str) -> bool:
    """Return whether a file with this name in a bundle is unpacked when the bundle is opened."""
    try:
        return "\\" not in relative_name(name)
    except OutsideError:
        return False


def _check_size(files: Mapping[str, Path]) -> None:
    """Check that a bundle of these files is small enough to be opened again. Raises UsageError if it is not."""
    total = sum(source.stat().st_size for source in files.values())
    if len(files) < LIMITS.members and total <= LIMITS.total_bytes:
        return
    folders = Counter(str(source.parent) for source in files.values())
    raise UsageError(
        f"a bundle contains at most {LIMITS.members - 1} files of {format_bytes(LIMITS.total_bytes)} in all; "
        f"this one would have {len(files)} of {format_bytes(total)}",
        hint=f"most are in {folders.most_common(1)[0][0]}: run that exercise again with fewer outputs",
    )


def _list_files(context: Context) -> Iterator[tuple[str, Path]]:
    root = context.paths.root
    folders = [context.paths.deliverables_root, context.paths.exercises]
    single = [context.paths.identity, context.paths.quiz]
    for exercise in context.catalog.exercises:
        records = [evidence.find_counting_run(context.paths, exercise), evidence.find_answered_run(context.paths, exercise)]
        folders += sorted({runs.files_of(context.paths, record).folder for record in records if record})
        single += _list_small_files(context.paths, exercise.id)
        single += _list_files_of_parts(context, exercise)
    paths = dict.fromkeys([*(path for folder in folders for path in sorted(folder.rglob("*"))), *single])
    for path in paths:
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            yield path.relative_to(root).as_posix(), path


def _list_small_files(paths: WorkspacePaths, exercise_id: str) -> Iterator[Path]:
    """Yield the records of every run of an exercise, without outputs and logs. They show the predictions, and which runs came
    before each prediction. Runs of the learner's own scripts are private."""
    for record in (record for record in runs.readable(paths, exercise_id)[0] if not record.own_script):
        files = runs.files_of(paths, record)
        yield from (files.folder / name for name in (*seals.EVIDENCE, files.hashes.name, files.verdict.name))


def _list_files_of_parts(context: Context, exercise: Exercise) -> Iterator[Path]:
    """Yield the copies of the handed-in parts in their runs, as the parts were when those runs started."""
    for result in read_part_results(context, exercise):
        passed_in = result.run if result.verdict == "passed" else ""
        if passed_in and (record := runs.read(context.paths, exercise.id, passed_in)) is not None:
            files = runs.files_of(context.paths, record)
            yield files.yours_file(result.file)
            yield files.batch(PurePath(result.file).stem)


def _unpack(path: Path, root: Path) -> set[str]:
    """Unpack a zip under `root`, and return the names of its files. Raises UsageError, or StorageError if this computer's disk
    fails."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
            raise UsageError(f"{printable(str(path))} is not a plain file", hint=_OPEN)
        with path.open("rb"):
            pass
    except OSError as error:
        raise UsageError(f"{printable(str(path))} cannot be read: {error.strerror}", hint=_OPEN) from error
    try:
        with storing(root):
            return set(unpack_zip(path, root, LIMITS))
    except OutsideError as error:
        raise _make_bundle_error(path, str(error)) from error


def _read_card(path: Path, root: Path) -> Card:
    """Return the card of a bundle, with its texts cut to fit a screen."""
    try:
        card = read_record(root / CARD, Card)
    except NewerFormat as error:
        raise UsageError(
            f"{printable(str(path))} was made by a newer gpucourse than this one, {__version__}", hint=error.hint
        ) from error
    except DamagedFile as error:
        raise _make_bundle_error(path, f"{CARD} is damaged: {error.why}") from error
    except StorageError as error:
        raise _make_bundle_error(path, f"{CARD} cannot be read") from error
    if card is None:
        raise _make_bundle_error(path, f"it contains no {CARD}")
    return replace(
        card,
        by=card.by[:_MAX_TEXT],
        made=card.made[:_MAX_TEXT],
        workspace=card.workspace[:_MAX_TEXT],
        gpucourse=card.gpucourse[:_MAX_TEXT],
        left_out=tuple(printable(name) for name in card.left_out[:_MAX_SHOWN]),
    )


def _make_bundle_error(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path} is not a complete bundle: {reason}",
        hint="ask the learner for it again: gpucourse grade --bundle FILE",
    )
