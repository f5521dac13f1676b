"""The records of runs: made, stored, listed, and found by whatever part of the id the learner typed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from gpucourse.errors import UnknownName, UsageError
from gpucourse.model.record import RunRecord
from gpucourse.workspace.files import read_record, storing, write_record
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

WORDS = """
acorn amber anvil aspen badger basil beacon birch bison bramble brook canyon cedar cinder clover comet coral crane delta
dune ember falcon fern fjord flint garnet gecko glade granite grove harbor hazel heron iris ivory jasper juniper kestrel
lagoon larch lichen lotus lynx maple marble marlin meadow mesa moss nectar oak ocean onyx opal orbit orchid osprey otter
pebble pine plover prairie quartz quill raven reef ridge river robin saffron sage sequoia slate sparrow spruce summit
swift tarn teal thistle tundra umber valley velvet violet walnut willow wren zephyr
""".split()


def new_run(paths: WorkspacePaths, exercise: str) -> str:
    """Make the folder of a new run and give back its id: `20260131-142501-otter`. The folder is claimed at once."""
    import secrets

    stamp = time.strftime("%Y%m%d-%H%M%S")
    for _ in range(100):
        run_id = f"{stamp}-{secrets.choice(WORDS)}"
        folder = paths.run(exercise, run_id).folder
        with storing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return run_id
    raise UsageError(f"too many runs of {exercise} were started in this very second", hint="wait a second and type it again")


def save(paths: WorkspacePaths, record: RunRecord) -> None:
    """Store the record of a run."""
    write_record(paths.run(record.exercise, record.id).record, record)


def reread(paths: WorkspacePaths, record: RunRecord) -> RunRecord:
    """The record as it is on disk now; the one at hand where it is gone."""
    return read_record(files_of(paths, record).record, RunRecord) or record


def files_of(paths: WorkspacePaths, record: RunRecord) -> RunPaths:
    """The files of one run."""
    return paths.run(record.exercise, record.id)


def every(paths: WorkspacePaths, exercise: str | None = None) -> list[RunRecord]:
    """The records of all runs (of one exercise), oldest first."""
    return sorted(_records(paths, exercise), key=lambda record: (record.created, record.id))


def find(paths: WorkspacePaths, wanted: str | None) -> RunRecord:
    """The run of that id, or of a part of it that fits only one, or of an exercise's number; with None, the newest.

    Raises UnknownName where none fits, UsageError where several do.
    """
    records = every(paths)
    if not records:
        raise UsageError("there are no runs yet", hint="start one: gpucourse run 3.2 --nodes 2")
    if wanted is None:
        return records[-1]
    wanted = wanted.strip("/")
    if "/" in wanted:
        wanted = wanted.rsplit("/", 1)[1]
    if exact := [record for record in records if wanted in {record.id, record.exercise}]:
        return exact[-1]
    hits = [record for record in records if record.id.startswith(wanted) or record.id.rsplit("-", 1)[-1] == wanted]
    if len(hits) > 1:
        raise UsageError(f"'{wanted}' fits {len(hits)} runs", hint=f"type more of it: {', '.join(hit.id for hit in hits[-4:])}")
    if hits:
        return hits[0]
    raise UnknownName("run", wanted, [record.id for record in reversed(records)], hint="list them: gpucourse runs")


def _records(paths: WorkspacePaths, exercise: str | None) -> Iterator[RunRecord]:
    folders: list[Path] = sorted(paths.runs.glob(f"{exercise or '*'}/*/run.json")) if paths.runs.is_dir() else []
    for file in folders:
        record = read_record(file, RunRecord)
        if record is not None:
            yield record
