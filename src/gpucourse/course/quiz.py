"""The quiz of a course: `modules/quiz.yaml`."""

from __future__ import annotations

from pathlib import Path

from gpucourse.course.written import read
from gpucourse.errors import ManifestError
from gpucourse.model.quiz import Quiz

FILE = "quiz.yaml"
HINT = "what stands in it: modules/quiz.schema.json, explained in docs/authoring.md"


def read_quiz(modules: Path) -> Quiz | None:
    """The quiz that lies beside the modules; None where there is none. Raises ManifestError with every complaint."""
    shown = f"{modules.name}/{FILE}"
    try:
        raw = (modules / FILE).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ManifestError([f"{shown}: cannot be read: {error.strerror}"], hint=HINT) from error
    return read(raw, Quiz, shown, hint=HINT)[0]
