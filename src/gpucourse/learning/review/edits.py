"""What a learner changed in the scripts of the runs that count."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.grading.edits import LARGEST, FileEdit, compare_files
from gpucourse.learning import evidence
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from gpucourse.outside.files import file_inside, read_bounded
from gpucourse.outside.names import OutsideError
from gpucourse.workspace import runs

NO_COPY = "edited, and no copy of it is with the run"


def list_all_edits(context: Context) -> dict[str, tuple[FileEdit, ...]]:
    """The edits behind the run that counts, by the exercise's number; exercises without any are left out."""
    every = (exercise for module in context.catalog.modules for exercise in module.exercises)
    return {exercise.id: edits for exercise in every if (edits := list_edits(context, exercise))}


def list_edits(context: Context, exercise: Exercise) -> tuple[FileEdit, ...]:
    """The edits behind the run that counts for an exercise: the course's own scripts first, then the learner's parts. Empty
    if there is no such run, or nothing was edited."""
    try:
        record = evidence.find_counting_run(context, exercise)
    except GpucourseError:  # the grade says why
        return ()
    return read_edits(context, exercise, record) if record else ()


def read_edits(context: Context, exercise: Exercise, record: RunRecord) -> tuple[FileEdit, ...]:
    """The edits behind one run of an exercise, in the order of `list_edits`."""
    module, _ = context.catalog.exercise(exercise.id)
    sources = context.catalog.sources(module, exercise)
    parts = {part.file: context.catalog.part_places(module, exercise)[part.id] for part in exercise.yours}
    scripts = {name: place for name, place in sources.items() if name in record.edited and name not in parts}
    edits = []
    for places, folder, part in ((scripts, "edited", False), (parts, "yours", True)):
        for name, place in places.items():
            try:
                original = (context.folders.exercises / place).read_bytes()
                file = file_inside(runs.files_of(context.paths, record).folder, f"{folder}/{name}")
                edited = read_bounded(file, LARGEST)
            except (OutsideError, OSError):
                if not part:
                    edits.append(FileEdit(file=name, part=False, added=None, removed=None, note=NO_COPY))
                continue
            if edited != original:
                edits.append(compare_files(name, original, edited, part=part))
    return tuple(edits)
