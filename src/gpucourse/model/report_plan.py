"""The plan of the final report, `modules/report.yaml`. Each chapter is made from the runs of one exercise."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpucourse.model.fields import ExerciseId, Expression, Name, Slug, Strict, Text
from gpucourse.model.manifest import Plot

SUBJECTS = "metrics.subjects"
"""The path to the rows of charts that compare subjects. Each row contains one subject and its figures by their ids."""


class Figure(Strict):
    """One number of a run for the comparison: its path as in a check, its title with the unit, and its decimal digits."""

    id: Name = Field(description="its name in the rows of metrics.subjects")
    value: Expression = Field(description="a path into the run, as in a check")
    title: Text = Field(description="what it is, with the unit")
    digits: int = Field(default=1, ge=0, le=9, description="digits after the point")


class Words(Strict):
    """The learner's answer to a question of the chapter's exercise."""

    question: Slug = Field(description="the id of a question of the chapter's exercise")
    title: Text = Field(description="the heading above the answer")


class ReportChapter(Strict):
    """One chapter: a comparison of the newest good run of each subject, the tables of those runs, charts, and the learner's
    words.

    A subject is a GPU. With `by`, it is a GPU together with a value of that parameter, such as a model. Charts read
    `metrics.subjects`, whose rows contain `subject` and each figure by its id. Charts may also read rows of the runs' own
    metrics, and then draw a separate line or bar for each subject. With `newest`, only the newest run is used, because that run
    itself makes the comparison.
    """

    id: Slug = Field(description="its name in messages")
    title: Text = Field(description="the heading")
    text: Text = Field(description="the text below the heading")
    exercise: ExerciseId = Field(description="the exercise whose runs it shows")
    by: Name | None = Field(default=None, description="a parameter: the chapter compares each of its values on each GPU")
    newest: bool = Field(default=False, description="only the newest run is shown")
    figures: tuple[Figure, ...] = Field(default=(), description="numbers of the runs, side by side")
    tables: tuple[Text, ...] = Field(default=(), description="titles of the exercise's tables that are included")
    charts: tuple[Plot, ...] = Field(default=(), description="pictures of metrics.subjects, or of rows of the runs")
    words: tuple[Words, ...] = Field(default=(), description="the learner's own words")


class Enough(Strict):
    """The requirements for a complete report."""

    gpus: int = Field(default=2, ge=1, description="the minimum number of GPUs")
    models: int = Field(default=2, ge=0, description="the minimum number of models")
    models_of: ExerciseId | None = Field(default=None, description="the exercise in which the values of `model` are counted")


class ReportPlan(Strict):
    """`modules/report.yaml`."""

    format: Literal[1] = Field(description="the format of this file; 1")
    title: Text = Field(description="the title of the report")
    course: Text = Field(default="", description="the name of the course, below the title")
    enough: Enough = Field(default=Enough(), description="what makes the report complete")
    chapters: tuple[ReportChapter, ...] = Field(min_length=1, description="the chapters, in order")
