"""The learner's answers on disk, `deliverables/<exercise>/answers.yaml`: reads them with all complaints, and writes them
whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpucourse.context import Context
from gpucourse.course.answersheet import Sheet, parse, render
from gpucourse.errors import UsageError
from gpucourse.model.fields import Scalar
from gpucourse.model.manifest import Exercise
from gpucourse.outside.files import read_bounded
from gpucourse.outside.names import OutsideError
from gpucourse.outside.yaml_reader import MAX_BYTES
from gpucourse.storage import write_text


def load_sheet(context: Context, exercise: Exercise) -> Sheet | None:
    """Return the handed-in answers; None if there are none. Raises ManifestError with every complaint."""
    path = context.paths.answers(exercise.id)
    return read_sheet(path, exercise) if path.is_file() else None


def read_sheet(path: Path, exercise: Exercise) -> Sheet:
    """Return the answers in a file. Raises UsageError if it is missing, ManifestError with every complaint."""
    try:
        raw = read_bounded(path.resolve(), MAX_BYTES)
    except (OSError, OutsideError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"{path} cannot be read: {why}", hint=f"gpucourse answer {exercise.id} --template writes a sheet to fill in"
        ) from error
    return parse(raw, str(path), exercise.id, exercise.questions, exercise.former_questions)


def write_sheet(context: Context, exercise: Exercise, answers: Mapping[str, Scalar], run: str | None) -> Path:
    """Hand the answers in; return the path of the sheet. Raises StorageError."""
    path = context.paths.answers(exercise.id)
    write_text(path, render(exercise.id, exercise.title, exercise.questions, answers, run))
    return path
