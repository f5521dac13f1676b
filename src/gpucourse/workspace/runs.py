"""Store and list the records of runs, and find a run by the part of its id that the learner types."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from pathlib import Path

from gpucourse.errors import DamagedFile, MissingError, UnknownName, UsageError
from gpucourse.model.record import RunRecord
from gpucourse.storage import make_folder, storing
from gpucourse.workspace.files import check_record, read_each, read_record, write_record
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

WORDS = """
acorn amber anvil aspen badger basil beacon birch bison bramble brook canyon cedar cinder clover comet coral crane delta
dune ember falcon fern fjord flint garnet gecko glade granite grove harbor hazel heron iris ivory jasper juniper kestrel
lagoon larch lichen lotus lynx maple marble marlin meadow mesa moss nectar oak ocean onyx opal orbit orchid osprey otter
pebble pine plover prairie quartz quill raven reef ridge river robin saffron sage sequoia slate sparrow spruce summit
swift tarn teal thistle tundra umber valley velvet violet walnut willow wren zephyr
""".split()

_SCRIPTS = "scripts"  # the folder for runs of the learner's own scripts
_MAX_NAME = 80
LATEST = "latest"
"""The name of the newest run, for every argument and option that accepts a run."""
_NUMBER = re.compile(r"\w+\.\d+")  # the number of an exercise
_FORM = "%Y%m%d-%H%M%S"
_STAMP = "20260131-142501"


def _format_now() -> str:
    """Return the local time in the format of run ids, to the second."""
    return time.strftime(_FORM)


def script_place(script: Path) -> str:
    """Return the folder below `runs/` for the runs of a learner's own script, such as `scripts/train.py` for `train.py`."""
    name = re.sub(r"[^\w.+-]", "_", script.name)[:_MAX_NAME]
    return f"{_SCRIPTS}/{f'_{name}' if name.startswith(('.', '-')) else name}"


def new_run(paths: WorkspacePaths, place: str, now: Callable[[], str] = _format_now) -> str:
    """Make the folder of a new run and return its id, such as `20260131-142501-otter`. No other command can get the same
    folder. Raises UsageError, StorageError.

    `place`: the exercise, or the result of `script_place` for a learner's own script.

    The time in the id of a new run is never before the time in an earlier id, even if the clock was set back.
    """
    import secrets

    names = [folder.name for folder in list_folders(paths)]
    newest, stamp = max((name[: len(_STAMP)] for name in names if _has_date(name)), default=""), now()
    if newest > stamp:  # the clock was set back
        stamp = _add_second(newest)
    suffixes = {name.rpartition("-")[2] for name in names}
    # A word alone identifies a run while there are unused words.
    words = [word for word in WORDS if word not in suffixes] or WORDS
    for _ in range(100):
        run_id = f"{stamp}-{secrets.choice(words)}"
        folder = paths.run(place, run_id).folder
        with storing(folder):
            make_folder(folder.parent)
            try:
                folder.mkdir(mode=0o755)
            except FileExistsError:
                continue
            return run_id
    raise UsageError(f"too many runs of {place} were started in the same second", hint="wait a second and type it again")


def is_exercise_number(name: str) -> bool:
    """Return whether a name has the form of an exercise's number, such as `3.2`."""
    return _NUMBER.fullmatch(name) is not None


def list_folders(paths: WorkspacePaths, place: str | None = None) -> list[Path]:
    """Return the folders of all runs and sweeps, or of those at one place: an exercise or a script. An absolute path is not
    a place."""
    if place and Path(place).is_absolute():
        return []
    patterns = [f"{place}/*"] if place else ["*/*", f"{_SCRIPTS}/*/*"]
    return [folder for pattern in patterns for folder in paths.runs.glob(pattern)]


def save(paths: WorkspacePaths, record: RunRecord) -> None:
    """Store the record of a run."""
    write_record(paths.run(record.folder, record.id).record, record)


def reread(paths: WorkspacePaths, record: RunRecord) -> RunRecord:
    """Return the record as it is on disk now, or the given record if the file is gone."""
    return read_record(files_of(paths, record).record, RunRecord) or record


def files_of(paths: WorkspacePaths, record: RunRecord) -> RunPaths:
    """Return the files of one run."""
    return paths.run(record.folder, record.id)


def lock_of(paths: WorkspacePaths, run_id: str) -> Path:
    """Return the lock that the follower of the run holds."""
    return paths.lock(f"run-{run_id}")


def every(paths: WorkspacePaths, exercise: str | None = None) -> list[RunRecord]:
    """Return the records of all runs, or of the runs of one exercise, oldest first. Raises MissingError or NewerFormat if a
    record cannot be read."""
    records, errors = readable(paths, exercise)
    if errors:
        raise next(iter(errors.values()))
    return records


def readable(paths: WorkspacePaths, place: str | None = None) -> tuple[list[RunRecord], dict[RunPaths, MissingError]]:
    """Return the records that can be read, oldest first, and the errors of the other records.

    `place`: an exercise or a script. If it is None, all runs are read.
    """
    records, errors = read_each(map(RunPaths, sorted(list_folders(paths, place))), lambda files: _read(files.record))
    return sorted(records, key=_order), errors


def iterate_newest_first(paths: WorkspacePaths, place: str | None = None) -> Iterator[RunRecord]:
    """Yield the records that can be read, newest first. Each is read only when needed, because a workspace may have
    thousands."""
    folders = sorted(list_folders(paths, place), key=_read_stamp, reverse=True)
    for _, same_second in groupby(folders, key=_read_stamp):
        records = (_read_or_leave_out(folder) for folder in same_second)
        yield from sorted(filter(None, records), key=_order, reverse=True)


def read(paths: WorkspacePaths, place: str, run_id: str) -> RunRecord | None:
    """Return the record of the run with exactly that id, or None if there is no such run. Raises MissingError."""
    return _read(paths.run(place, run_id).record) if _has_date(run_id) and "/" not in run_id else None


def is_newer(paths: WorkspacePaths, run_id: str, record: RunRecord) -> bool:
    """Return whether the run with that id exists and is newer than `record`, another run of the same exercise."""
    try:
        stored = read(paths, record.folder, run_id)
    except MissingError:  # damaged: only its id is known
        return run_id > record.id
    return stored is not None and _order(stored) > _order(record)


def list_collected(paths: WorkspacePaths, stack: str, *, max_runs: int = 40) -> list[str]:
    """Return the ids of a stack's runs that have ended, are sealed, and whose outputs have all been collected.

    `max_runs`: how many of the workspace's newest runs to look at.
    """
    newest = islice(iterate_newest_first(paths), max_runs)
    records = (
        record for record in newest if record.stack == stack and record.has_ended and record.collected and not record.refused
    )
    return [record.id for record in records if files_of(paths, record).hashes.exists()]


def list_unfinished(paths: WorkspacePaths, stack: str | None = None) -> list[RunRecord]:
    """Return the runs that have not ended, on one stack or on all, oldest first. Records that cannot be read are left out.

    A sealed run has ended, so its record is not read.
    """
    unsealed = (folder for folder in list_folders(paths) if not RunPaths(folder).hashes.exists())
    records = (record for folder in unsealed if (record := _read_or_leave_out(folder)) and not record.has_ended)
    return sorted((record for record in records if stack in {None, record.stack}), key=_order)


def find(paths: WorkspacePaths, name: str | None, subject: str | None = None) -> RunRecord:
    """Return the run that `name` identifies. Without a name, return the newest run.

    A name may be an exercise or a script, which means its newest run. It may also be a run's id, the beginning of an id, or an
    id's last word. The name `latest` means the newest run of `subject` (an exercise or a script) or, without a
    subject, of all runs.

    Raises UnknownName if no run matches, UsageError if several match or there is no run yet, and MissingError if the record
    cannot be read.
    """
    is_latest = name == LATEST
    name = subject if is_latest else name
    records, errors = readable(paths)
    if not records and not errors and not _NUMBER.fullmatch(name or ""):
        raise UsageError("there are no runs yet", hint="gpucourse next")
    if name is None:
        if records:
            return records[-1]
        raise next(iter(errors.values()))
    path = name.strip("/")
    name = path.rpartition("/")[2]
    if exact := [record for record in records if name in {record.id, _name_subject(record)}]:
        # Scripts in several folders may have the same name: the one whose path was typed is preferred.
        return next((record for record in reversed(exact) if record.is_of_script(path)), exact[-1])
    if matches := [record for record in records if not is_latest and _fits(record.id, name)]:
        if len(matches) == 1:
            return matches[0]
        newest = ", ".join(record.id for record in matches[-4:])
        raise UsageError(f"'{name}' matches {len(matches)} runs", hint=f"type more of it: {newest}")
    if is_latest or _NUMBER.fullmatch(name):
        hint = f"gpucourse run {name}" if _NUMBER.fullmatch(name) else "gpucourse runs"
        raise UsageError(f"{name} has no run yet", hint=hint)
    if error := next((error for files, error in errors.items() if _fits(files.folder.name, name)), None):
        raise error
    raise UnknownName("run", name, [record.id for record in reversed(records)], hint="list them: gpucourse runs")


def find_newest_two(paths: WorkspacePaths, subject: str) -> list[RunRecord]:
    """Return the two newest good runs of an exercise or of a script, the older one first. A good run succeeded, without a
    profiler and without --expect-red. If several scripts have the same name, only runs of the script whose path was typed
    count. Raises UsageError if there are fewer than two."""
    records = [record for record in readable(paths)[0] if _name_subject(record) == subject.rpartition("/")[2]]
    records = [record for record in records if record.is_of_script(subject)] or records
    good_records = [
        record for record in records if record.state == "succeeded" and not (record.profiled or record.expected_red)
    ]
    if len(good_records) < 2:
        words = records[-1].run_words if records else [subject]
        count = "1 good run" if good_records else "no good run"
        raise UsageError(
            f"{subject} has {count}, and a comparison needs two: runs that succeeded without --profile or --expect-red",
            hint=shlex.join(["gpucourse", "run", *words]),
        )
    return good_records[-2:]


def _name_subject(record: RunRecord) -> str:
    return record.subject if record.place else record.exercise


def _fits(run_id: str, name: str) -> bool:
    return run_id.startswith(name) or run_id.rsplit("-", 1)[-1] == name


def _order(record: RunRecord) -> tuple[str, str, str]:
    """Return the key that sorts records from the oldest to the newest. Within one second, the exact time decides."""
    return record.id[: len(_STAMP)], record.created, record.id


def read_start(folder: Path) -> str:
    """Return when the run in that folder was started, from the folder's name, as a moment in UTC. Return an empty string for
    another folder."""
    if not _has_date(folder.name):
        return ""
    return datetime.strptime(_read_stamp(folder), _FORM).astimezone(UTC).isoformat()


def _read_stamp(folder: Path) -> str:
    return folder.name[: len(_STAMP)]


def _read_or_leave_out(folder: Path) -> RunRecord | None:
    try:
        return _read(RunPaths(folder).record)
    except MissingError:
        return None


def _read(file: Path) -> RunRecord | None:
    """Return the record in a run's folder. Raises MissingError if it cannot be read, or is the record of another run."""
    record = read_record(file, RunRecord)
    if record is None:
        return None
    check_record(
        file,
        names=(record.id, record.exercise, record.stack, record.mode, *record.nodes, *record.folder.split("/")),
        moments=(record.created, record.started, record.ended),
    )
    parts = (*record.folder.split("/"), record.id)
    if parts != file.parent.parts[-len(parts) :]:
        raise DamagedFile(file, f"it is the record of {record.folder}/{record.id}")
    return record


def _has_date(name: str) -> bool:
    try:
        time.strptime(name[: len(_STAMP)], _FORM)
    except ValueError:
        return False
    return name[len(_STAMP) :].startswith("-")


def _add_second(stamp: str) -> str:
    moment = datetime.strptime(stamp, _FORM).replace(tzinfo=UTC)  # in every time zone the next second is the same
    return (moment + timedelta(seconds=1)).strftime(_FORM)
