"""What a course's points are given for: `modules/rubric.yaml`, which an instructor may change."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from gpucourse.model.fields import ExerciseId, ModuleId, Slug, Strict, Text

Kind = Literal["checks", "deliverables", "answers"]
Counts = Literal["course", "bonus", "own"]


class Row(Strict):
    """So many points for one thing, in equal shares for every exercise and every kind of evidence.

    `checks`: which of the exercise's checks passed on the run that counts. `deliverables`: which of the files that it asks for
    are there, as the run left them. `answers`: which questions are answered rightly, or well in the judgement of a person.
    """

    id: Slug
    title: Text
    points: float = Field(gt=0, le=1000)
    evidence: tuple[Kind, ...] = Field(min_length=1)
    exercises: tuple[ExerciseId, ...] = Field(default=(), description="all of the module's, where none is named")


class Part(Strict):
    """The rows of one module. `counts`: towards the course's points, as a bonus beyond them, or as a score of its own."""

    module: ModuleId
    title: Text
    counts: Counts = "course"
    rows: tuple[Row, ...] = Field(min_length=1)

    @property
    def points(self) -> float:
        """The most that this part gives."""
        return sum(row.points for row in self.rows)

    @model_validator(mode="after")
    def _of_this_module(self) -> Part:
        ids = [row.id for row in self.rows]
        if twice := next((id_ for id_ in ids if ids.count(id_) > 1), None):
            raise ValueError(f"the row {twice} appears twice")
        for row in self.rows:
            if strange := next((id_ for id_ in row.exercises if id_.partition(".")[0] != self.module), None):
                raise ValueError(f"row {row.id}: {strange} is no exercise of module {self.module}")
        return self


class Rubric(Strict):
    """The points of a course."""

    format: Literal[1]
    parts: tuple[Part, ...] = Field(min_length=1)

    def part(self, module: str) -> Part | None:
        """The part of that module, or None."""
        return next((part for part in self.parts if part.module == module), None)

    @model_validator(mode="after")
    def _once(self) -> Rubric:
        modules = [part.module for part in self.parts]
        if twice := next((id_ for id_ in modules if modules.count(id_) > 1), None):
            raise ValueError(f"module {twice} has two parts")
        return self


def usual(module: str, title: str) -> Part:
    """The rows of a module that the rubric does not name: a score of its own, out of 25."""
    return Part(
        module=module,
        title=title,
        counts="own",
        rows=(
            Row(id="completed", title="All exercises completed", points=10, evidence=("checks",)),
            Row(id="deliverables", title="Deliverables handed in", points=5, evidence=("deliverables",)),
            Row(id="understanding", title="Understanding shown", points=10, evidence=("answers",)),
        ),
    )
