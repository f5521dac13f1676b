"""What the final report is made of, as `modules/report.yaml` says it: chapters, each drawn from the runs of one exercise."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpucourse.model.fields import ExerciseId, Expression, Name, Slug, Strict, Text
from gpucourse.model.manifest import Plot

SUBJECTS = "metrics.subjects"
"""The rows of charts that compare: one for each subject, with its figures by their ids."""


class Figure(Strict):
    """One number of a run for the comparison: a value as in a check, its title with the unit, and how it is written."""

    id: Name
    value: Expression
    title: Text
    digits: int = Field(default=1, ge=0, le=9)


class Words(Strict):
    """The learner's own words: the answer to a question of the chapter's exercise."""

    question: Slug
    title: Text


class ReportChapter(Strict):
    """One chapter: a comparison of the newest good run of each subject, the tables of those runs, charts, words.

    A subject is a GPU, and with `by` a GPU with the value of that parameter (a model). Charts read `metrics.subjects`, whose
    rows hold `subject` and each figure by its id; or rows of the runs' own metrics: then every subject has its own line, or its
    own bar at each place. `newest`: only the newest run speaks, since it compares by itself.
    """

    id: Slug
    title: Text
    text: Text
    exercise: ExerciseId
    by: Name | None = None
    newest: bool = False
    figures: tuple[Figure, ...] = ()
    tables: tuple[Text, ...] = Field(default=(), description="titles of the exercise's tables that are taken over")
    charts: tuple[Plot, ...] = ()
    words: tuple[Words, ...] = ()


class Enough(Strict):
    """What makes the report whole."""

    gpus: int = Field(default=2, ge=1)
    models: int = Field(default=2, ge=0)
    models_of: ExerciseId | None = Field(default=None, description="the exercise whose parameter `model` is counted")


class ReportPlan(Strict):
    """`modules/report.yaml`."""

    format: Literal[1]
    title: Text
    enough: Enough = Enough()
    chapters: tuple[ReportChapter, ...] = Field(min_length=1)
