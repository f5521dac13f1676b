"""The rubric of a course, `modules/rubric.yaml`: what earns points. An instructor may change it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from gpucourse.model.fields import ExerciseId, ModuleId, Slug, Strict, Text

Kind = Literal["checks", "deliverables", "yours", "answers"]
Counts = Literal["course", "bonus"]

KINDS: tuple[Kind, ...] = ("checks", "deliverables", "yours", "answers")
UNEDITED_KINDS: frozenset[Kind] = frozenset({"checks", "deliverables"})
"""The kinds of evidence that a run of the unchanged script can earn."""
MAX_UNEDITED_SHARE = 0.3
"""The largest share of an exercise's points that the kinds in `UNEDITED_KINDS` may have together."""
EXERCISE_POINTS = 10.0
"""The points of each exercise in the whole course."""
EXERCISE_WEIGHTS: Mapping[Kind, float] = {"checks": 15, "deliverables": 10, "yours": 45, "answers": 30}
"""How much each kind of evidence weighs in the points that an exercise earns in the whole course."""


def _weigh_equally(value: object) -> object:
    """Convert a list of kinds to equal weights. Raises ValueError if a kind appears twice."""
    if isinstance(value, tuple | list) and all(isinstance(kind, str) for kind in value):
        if len(set(value)) < len(value):
            raise ValueError("a kind of evidence appears twice")
        return dict.fromkeys(value, 1.0)
    return value


def _check_weights(weights: Mapping[Kind, float]) -> Mapping[Kind, float]:
    if not weights or any(not 0 < weight <= 1000 for weight in weights.values()):
        raise ValueError("needs a kind of evidence, each with a weight above 0 and up to 1000")
    return weights


Weights = Annotated[
    dict[Kind, float],
    BeforeValidator(_weigh_equally),
    AfterValidator(_check_weights),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"enum": list(KINDS)}, "minItems": 1, "uniqueItems": True},
                {
                    "type": "object",
                    "propertyNames": {"enum": list(KINDS)},
                    "additionalProperties": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000},
                    "minProperties": 1,
                },
            ],
            "description": "the kinds of evidence, each with its weight; a list gives them equal weights",
        }
    ),
]


class Row(Strict):
    """Points that are divided equally among exercises, and within an exercise by the weights of the kinds of evidence.

    `checks` counts the checks that passed on the run that counts. `deliverables` counts the required files that exist,
    unchanged since the run. `yours` counts the parts that the learner has written correctly. `answers` counts right answers,
    texts that a person judged good, and predictions.
    """

    id: Slug = Field(description="its name in tables")
    title: Text = Field(description="what the points are for")
    points: float = Field(gt=0, le=1000, description="how many points it is worth")
    evidence: Weights = Field(
        description="the kinds of evidence (checks, deliverables, yours, answers), each with its weight; a list: equal weights"
    )
    exercises: tuple[ExerciseId, ...] = Field(
        default=(), description="the exercises that earn the points; by default, all of the module"
    )

    def shares(self, kinds: Collection[Kind]) -> dict[Kind, float]:
        """Return the share of this row's points for each of the `kinds` of evidence that an exercise has. Return an empty
        dictionary if the row has none of them. The share of a missing kind goes to the kinds that need thought. If there are
        none, it goes to the remaining kinds."""
        present = [kind for kind in self.evidence if kind in kinds]
        takers = [kind for kind in present if kind not in UNEDITED_KINDS] or present
        absent = sum(weight for kind, weight in self.evidence.items() if kind not in present)
        total, share = sum(self.evidence.values()), sum(self.evidence[kind] for kind in takers)
        return {
            kind: (self.evidence[kind] + (absent * self.evidence[kind] / share if kind in takers else 0)) / total
            for kind in present
        }


class RubricPart(Strict):
    """The rows of one module. `counts` says whether their points count towards the course's points or as a bonus."""

    module: ModuleId = Field(description="the module whose exercises earn the points")
    title: Text | None = Field(default=None, description="the heading above the rows; by default the module's title")
    counts: Counts = Field(
        default="course", description="how its points count: towards the course's points, or as a bonus on top of them"
    )
    rows: tuple[Row, ...] = Field(min_length=1, description="what the points are given for")

    @property
    def points(self) -> float:
        """Return the sum of the points of its rows."""
        return sum(row.points for row in self.rows)

    @model_validator(mode="after")
    def _check_module(self) -> RubricPart:
        ids = [row.id for row in self.rows]
        if duplicate := next((id_ for id_ in ids if ids.count(id_) > 1), None):
            raise ValueError(f"the row {duplicate} appears twice")
        for row in self.rows:
            if strange := next((id_ for id_ in row.exercises if id_.partition(".")[0] != self.module), None):
                raise ValueError(f"row {row.id}: {strange} is not an exercise of module {self.module}")
        return self


class Rubric(Strict):
    """The points of a course."""

    format: Literal[1] = Field(description="the format of this file; 1")
    parts: tuple[RubricPart, ...] = Field(min_length=1, description="the points of each module")

    def part(self, module: str) -> RubricPart | None:
        """Return the part of that module, or None."""
        return next((part for part in self.parts if part.module == module), None)

    @model_validator(mode="after")
    def _refuse_repeated_modules(self) -> Rubric:
        modules = [part.module for part in self.parts]
        if duplicate := next((id_ for id_ in modules if modules.count(id_) > 1), None):
            raise ValueError(f"module {duplicate} has two parts")
        return self
