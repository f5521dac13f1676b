"""The rubric of a course: `modules/rubric.yaml`, and the usual rows for every module that it does not name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpucourse.course.written import read_beside
from gpucourse.model.manifest import Module
from gpucourse.model.rubric import Part, Rubric, usual

FILE = "rubric.yaml"
HINT = "what stands in it: modules/rubric.schema.json, explained in docs/authoring.md"


def read_rubric(modules: Path) -> Rubric | None:
    """The rubric that lies beside the modules; None where there is none. Raises ManifestError with every complaint."""
    return read_beside(modules, FILE, Rubric, hint=HINT)


def parts_of(rubric: Rubric | None, modules: tuple[Module, ...]) -> tuple[Part, ...]:
    """Every part that has points: those of the rubric, then those of modules that it does not name."""
    named = rubric.parts if rubric else ()
    missing = (module for module in modules if rubric is None or rubric.part(module.id) is None)
    return (*named, *(usual(module.id, module.title) for module in missing))


def strangers(rubric: Rubric, modules: tuple[Module, ...]) -> Iterator[str]:
    """What the rubric says of exercises that a module of this course does not have, one line each."""
    there = {module.id: module for module in modules}
    for part in rubric.parts:
        module = there.get(part.module)
        for row in part.rows if module else ():
            for exercise in row.exercises:
                if module and module.exercise(exercise) is None:
                    yield f"{FILE}: parts.{part.module}.{row.id}: there is no exercise {exercise}"
