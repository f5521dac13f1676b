"""The learner's edits of scripts in the runs that count, the handed-in parts, and a bundle with its points and these edits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.grading.edits import MAX_BYTES, FileEdit, compare_files, count_script_lines
from gpucourse.learning import evidence
from gpucourse.learning.bundle import OpenBundle
from gpucourse.learning.grade import grade
from gpucourse.model.manifest import Exercise, LearnerPart
from gpucourse.model.record import RunRecord
from gpucourse.model.score import Grade
from gpucourse.model.verdict import PartResult
from gpucourse.outside.files import file_inside, read_bounded
from gpucourse.outside.names import OutsideError
from gpucourse.runs.parts import is_as_delivered, is_solution, read_part_results
from gpucourse.workspace import runs

NO_COPY = "edited, but the run has no copy of it"


def list_all_edits(context: Context) -> dict[str, tuple[FileEdit, ...]]:
    """Return what the learner edited and handed in, by the exercise's number. Exercises without edits are left out."""
    return {exercise.id: edits for exercise in context.catalog.exercises if (edits := list_edits(context, exercise))}


def list_edits(context: Context, exercise: Exercise) -> tuple[FileEdit, ...]:
    """Return the edits behind the run that counts for an exercise. The order is: the course's own scripts; the run's parts,
    unless they equal the handed-in parts; the handed-in parts, from any run."""
    try:
        record = evidence.find_counting_run(context.paths, exercise)
    except GpucourseError:  # the grade says why
        record = None
    behind_run = read_edits(context, exercise, record) if record else ()
    handed_in = {edit.file: edit for edit in _read_handed_in(context, exercise)}
    differing = [edit for edit in behind_run if edit.file not in handed_in or edit.lines != handed_in[edit.file].lines]
    return (*differing, *handed_in.values())


def _read_handed_in(context: Context, exercise: Exercise) -> Iterator[FileEdit]:
    """Yield the handed-in parts, each as an edit of the delivered file, with its mark."""
    places = context.catalog.part_places(exercise)
    try:
        results = read_part_results(context, exercise)
    except GpucourseError:  # the grade says why
        return
    for part, result in zip(exercise.yours, results, strict=True):
        try:
            file = file_inside(context.paths.deliverables(exercise.id), f"yours/{part.file}")
            original, submission = (context.folders.exercises / places[part.id]).read_bytes(), read_bounded(file, MAX_BYTES)
        except (OutsideError, OSError):
            continue
        edit = compare_files(part.file, original, submission, part=True)
        mark = _describe_mark(context, exercise, part, result, file)
        yield replace(edit, note=f"{edit.note}; {mark}" if edit.note and submission != original else mark)


def _describe_mark(context: Context, exercise: Exercise, part: LearnerPart, result: PartResult, file: Path) -> str:
    """Return the judgement of a handed-in part, as text for the reader."""
    if is_as_delivered(context, exercise, part, file):
        return "handed in as the course delivers it: open"
    if result.verdict == "passed" and is_solution(context, exercise, part, file):
        return "handed in; the same as a solution of the course, apart from comments and spaces"
    right_text = "right" if part.checks else "right, but judged only on the learner's computer"
    words = {"passed": right_text, "failed": f"wrong: {result.says}", "error": f"not judged: {result.says}"}
    return f"handed in; {words.get(result.verdict, 'differs from the file that was judged: open')}"


def read_edits(context: Context, exercise: Exercise, record: RunRecord) -> tuple[FileEdit, ...]:
    """Return the edits behind one run of an exercise, in the order of `list_edits`."""
    sources = context.catalog.sources(exercise)
    parts = {part.file: context.catalog.part_places(exercise)[part.id] for part in exercise.yours}
    scripts = {name: place for name, place in sources.items() if name in record.edited and name not in parts}
    edits = []
    for places, folder, part in ((scripts, "edited", False), (parts, "yours", True)):
        for name, place in places.items():
            try:
                original = (context.folders.exercises / place).read_bytes()
                file = file_inside(runs.files_of(context.paths, record).folder, f"{folder}/{name}")
                content = read_bounded(file, MAX_BYTES)
            except (OutsideError, OSError):
                if not part:
                    edits.append(FileEdit(file=name, part=False, added=None, removed=None, note=NO_COPY))
                continue
            if content != original:
                edits.append(compare_files(name, original, content, part=part))
    return tuple(edits)


@dataclass(frozen=True, kw_only=True)
class GradedBundle:
    """An open bundle with its grade. `edits` maps each exercise number to the edits behind the run that counts."""

    bundle: OpenBundle
    grade: Grade
    edits: dict[str, tuple[FileEdit, ...]]

    @property
    def edited_lines(self) -> int:
        """Return how many lines of the course's own scripts were changed."""
        return count_script_lines(self.edits)


def grade_bundle(bundle: OpenBundle) -> GradedBundle:
    """Return the grade of an open bundle. Raises ManifestError if the rubric has errors."""
    return GradedBundle(bundle=bundle, grade=grade(bundle.context), edits=list_all_edits(bundle.context))
