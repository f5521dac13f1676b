"""The quiz of a course: `modules/quiz.yaml`."""

from __future__ import annotations

from pathlib import Path

from gpucourse.course.written import read_beside
from gpucourse.model.quiz import Quiz

FILE = "quiz.yaml"


def read_quiz(modules: Path) -> Quiz | None:
    """Read the quiz next to the modules, or return None if there is none. Raises ManifestError with every error."""
    return read_beside(modules, FILE, Quiz)
