"""The quiz of a course: `modules/quiz.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gpucourse.course.written import read_beside
from gpucourse.model.manifest import Module
from gpucourse.model.quiz import Quiz

FILE = "quiz.yaml"


def read_quiz(modules: Path) -> Quiz | None:
    """Read the quiz next to the modules, or return None if there is none. Raises ManifestError with every error."""
    return read_beside(modules, FILE, Quiz)


def find_unknown_modules(quiz: Quiz, modules: Iterable[Module]) -> Iterator[str]:
    """Yield the modules that the quiz names but the course does not have."""
    ids = {module.id for module in modules}
    names = dict.fromkeys([*(lesson.module for lesson in quiz.lessons), *(question.module for question in quiz.questions)])
    yield from (f"{FILE}: there is no module {name}" for name in names if name is not None and name not in ids)
