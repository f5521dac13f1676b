"""What a person writes: the manifest of a module. Strict: an unknown key, a wrong type or a bad value is a complaint.

The JSON Schema that editors pick up is generated from these classes (`course.schema`).
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

from pydantic import Field, model_validator

from gpucourse.hardware import hardware
from gpucourse.model.check import Check
from gpucourse.model.fields import (
    Bytes,
    ExerciseId,
    FileName,
    ModuleId,
    Name,
    ProgramName,
    RelativePath,
    Rows,
    Scalar,
    Seconds,
    Slug,
    Strict,
    Text,
)
from gpucourse.model.labs import Labs
from gpucourse.model.launching import Launch
from gpucourse.model.questions import Prediction, Question

FORMAT = 1


ARTICLE = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "bool"
    return isinstance(value, {"int": (int,), "float": (int, float), "str": (str,), "bool": ()}[kind])


def _to_item(word: str, kind: str | None) -> Scalar:
    return int(word) if kind == "int" and re.fullmatch(r"[0-9]{1,18}", word) else word


class Parameter(Strict):
    """What the learner may change: `--set name=value`, or the script's own flag `--name`."""

    name: Name
    type: Literal["int", "float", "str", "bool"]
    default: Scalar
    help: Text
    min: float | None = None
    max: float | None = None
    choices: tuple[Scalar, ...] = ()
    choices_of: Literal["instance types"] | None = Field(
        default=None, description="choices that are not written here: the instance types with a GPU that the course offers"
    )
    unit: str = ""
    each: Literal["int", "str"] | None = Field(default=None, description="str: values parted by commas, of this type")
    local: Scalar | None = Field(default=None, description="the default on simulated nodes, where it must be smaller")

    @model_validator(mode="before")
    @classmethod
    def _fill_in_choices(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("choices_of") != "instance types":
            return data
        if "choices" in data:
            raise ValueError("choices and choices_of cannot be combined")
        return data | {"choices": hardware().startable_types}

    @property
    def of(self) -> Literal["int", "float", "str", "bool"]:
        """The type that range and choices speak of: of each value, where there are several."""
        return self.each or self.type

    @property
    def flag(self) -> str:
        """The script's flag for this parameter."""
        return "--" + self.name.replace("_", "-")

    def default_for(self, *, local: bool) -> Scalar:
        """The value when the learner says nothing: `local` on simulated nodes, where the manifest has one."""
        return self.local if local and self.local is not None else self.default

    def find_objection(self, value: Scalar) -> str | None:
        """Why `value` may not be given, or None where it may: its type, the range, the choices."""
        if not _is(value, self.type):
            return f"{value!r} is not {ARTICLE[self.type]}"
        values = [_to_item(word.strip(), self.each) for word in str(value).split(",")] if self.each else [value]
        return next((objection for item in values if (objection := self._object_to_value(item))), None)

    def _object_to_value(self, value: Scalar) -> str | None:
        if not _is(value, self.of):
            return f"{value!r} is not {ARTICLE[self.of]}"
        if self.choices and value not in self.choices:
            return f"{value!r} is not one of {', '.join(map(str, self.choices))}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{value!r} is not a finite number"
        unit = f" {self.unit}" if self.unit else ""
        if isinstance(value, (int, float)) and self.min is not None and value < self.min:
            return f"{value} is below {self.min:g}{unit}"
        if isinstance(value, (int, float)) and self.max is not None and value > self.max:
            return f"{value} is above {self.max:g}{unit}"
        return None

    @model_validator(mode="after")
    def _defaults_are_allowed(self) -> Parameter:
        if self.each and self.type != "str":
            raise ValueError(f"each is for text with commas in it, not for {ARTICLE[self.type]}")
        if self.of in {"str", "bool"} and (self.min is not None or self.max is not None):
            raise ValueError(f"min and max are for numbers, not for {ARTICLE[self.of]}")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min ({self.min:g}) is above max ({self.max:g})")
        for choice in self.choices:
            if not _is(choice, self.of):
                raise ValueError(f"the choice {choice!r} is not {ARTICLE[self.of]}")
        for key, value in (("default", self.default), ("local", self.local)):
            if value is not None and (objection := self.find_objection(value)):
                raise ValueError(f"{key}: {objection}")
        return self


class MetricsColumn(Strict):
    """One column of the table that a run shows: `key` in each row, a title with its unit, a number of digits. A narrow terminal
    does without the `spare` ones."""

    key: Name
    title: Text
    digits: int | None = Field(default=None, ge=0, le=9)
    spare: bool = Field(default=False, description="the first to go where a terminal is narrow, as p20 and p80 always are")


class MetricsTable(Strict):
    """Rows of the metrics, shown after a run."""

    title: Text
    rows: Rows
    columns: tuple[MetricsColumn, ...] = Field(min_length=1)
    main: bool = Field(default=False, description="the table that a run's result shows; without one, the first")


class Series(Strict):
    """One line or group of bars: `key` in each row. `low` and `high` are the keys of the spread around it."""

    key: Name
    label: Text
    low: Name | None = None
    high: Name | None = None

    @model_validator(mode="after")
    def _both_ends(self) -> Series:
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high belong together")
        return self


class Plot(Strict):
    """A picture of rows of the metrics. Axis titles carry the unit.

    `ideal` draws y = first value times x / first x; `ideal_key` draws what each row itself calls ideal. `by` draws a line
    for each value of that key in the rows.
    """

    file: FileName
    title: Text
    kind: Literal["line", "bar"]
    rows: Rows
    x: Name
    by: Name | None = None
    series: tuple[Series, ...] = Field(min_length=1)
    x_title: Text
    y_title: Text
    connect: bool = Field(default=True, description="false: no line from point to point")
    log_x: bool = False
    log_y: bool = False
    ideal: bool = False
    ideal_key: Name | None = None
    ideal_label: Text = "ideal"
    evidence: Literal["logic", "gpu"] = Field(
        default="logic", description="gpu: drawn where a GPU was measured, now or for the course's record"
    )

    @model_validator(mode="after")
    def _one_ideal(self) -> Plot:
        if self.ideal and self.ideal_key:
            raise ValueError("ideal and ideal_key cannot be combined")
        if self.ideal and self.kind == "bar":
            raise ValueError("bars stand on words, which have no ideal line: use ideal_key")
        if self.by and (self.kind == "bar" or self.ideal):
            raise ValueError("by is for lines without an ideal of their own: ideal_key draws one for all")
        return self


class LearnerPart(Strict):
    """What the learner writes: a file, which the course's judge looks at in a process of its own, or checks of the run.

    The judge is `judges/<file>` beside the exercises' scripts (for a file that is no Python, its name with the ending .py),
    the solution `solutions/<file>`, another right way `solutions/other/<file>`.
    """

    id: Slug
    title: Text
    file: RelativePath = Field(description="beside the script; the learner edits the copy in the workspace")
    write: Text = Field(description="what to write, as an order: Write the body of busbw: ...")
    judge: bool = Field(default=True, description="false: only checks of a run judge it")
    checks: tuple[Slug, ...] = Field(
        default=(), description="checks of the run that are about it: open while it is as delivered"
    )
    torch: bool = Field(default=True, description="whether the judge needs torch")
    packages: tuple[Name, ...] = Field(default=(), description="what else the judge needs on the learner's computer: [triton]")
    limit: Seconds = Field(default=20.0, description="how long the judge may take")
    submit: bool = Field(default=False, description="a batch file: once it is right, run submits it in place of the course's")
    instead_of: Slug | None = Field(
        default=None, description="a part before it whose place it takes, where that one cannot be tried: one of them is enough"
    )


class CodeFault(Strict):
    """An error that benchmarks really make: `break --how code` puts it into a copy of the exercise, the learner finds it.

    `was` stands once in `file` (the script, or a file that travels with it) and `becomes` takes its place. The judge of the
    repaired copy is `judges/fault_<id>.py` beside the scripts, with _ for each -.
    """

    id: Slug
    title: Text = Field(description="what is wrong, as it stands in the list from which the learner chooses")
    file: RelativePath
    was: Text
    becomes: str
    hints: tuple[Text, ...] = Field(min_length=2, description="shown one at a time after a wrong diagnosis")
    explanation: Text = Field(description="why it matters; shown after the right diagnosis")
    torch: bool = Field(default=True, description="whether the judge needs torch")


class Deliverable(Strict):
    """What the learner hands in: `source` is a pattern in the run's folder; every match is copied. `evidence: gpu` where only
    a run on a GPU leaves it."""

    title: Text
    source: RelativePath
    evidence: Literal["logic", "gpu"] = "logic"


class Exercise(Strict):
    """One exercise: a script, what may be changed, how it starts, what it must show."""

    id: ExerciseId
    title: Text
    goal: Text
    minutes: int = Field(ge=1)
    script: RelativePath
    files: tuple[RelativePath, ...] = ()
    packages: tuple[Name, ...] = Field(
        default=("torch",), description="what the script imports, looked for on the nodes before it starts"
    )
    programs: tuple[ProgramName, ...] = Field(
        default=(), description="programs that the script starts, looked for on the nodes before it starts"
    )
    optional_programs: tuple[ProgramName, ...] = Field(
        default=(), description="programs without which a part of it is not measured; the script looks for them itself"
    )
    builds_on: tuple[ExerciseId, ...] = Field(
        default=(), description="exercises whose newest measurements travel along, as earlier-ID-RUN.json"
    )
    launch: Launch
    parameters: tuple[Parameter, ...] = ()
    outputs: tuple[RelativePath, ...] = Field(default=(), description="patterns in the work folder, besides outputs/")
    max_output: Bytes = 1 << 30
    yours: tuple[LearnerPart, ...] = ()
    predict: Prediction | None = Field(default=None, description="what the learner foretells before the ranks start")
    no_predict: Text | None = Field(default=None, description="why there is nothing to foretell")
    faults: tuple[CodeFault, ...] = ()
    tasks: tuple[Text, ...] = Field(min_length=1)
    questions: tuple[Question, ...] = ()
    former_questions: tuple[Slug, ...] = Field(
        default=(), description="asked by earlier versions: answers to them are kept, and count for nothing"
    )
    hints: tuple[Text, ...] = Field(min_length=1)
    tables: tuple[MetricsTable, ...] = ()
    plots: tuple[Plot, ...] = ()
    checks: tuple[Check, ...] = ()
    deliverables: tuple[Deliverable, ...] = ()

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    @property
    def main_table(self) -> MetricsTable | None:
        """The one table that the result of a run shows: the one that says so, else the first; None where there is none."""
        return next((table for table in self.tables if table.main), next(iter(self.tables), None))

    @model_validator(mode="after")
    def _one_main_table(self) -> Exercise:
        if sum(table.main for table in self.tables) > 1:
            raise ValueError("tables: only one can be main, the one that a run's result shows")
        return self

    @model_validator(mode="after")
    def _prediction_or_reason(self) -> Exercise:
        checks, files = {check.id for check in self.checks}, {self.script, *self.files}
        for question in self.questions:
            if question.kind == "mutation" and (question.check not in checks or question.edit not in files):
                raise ValueError(f"question {question.id}: check must be a check of this exercise, edit its script or a file")
        if self.predict and self.no_predict:
            raise ValueError("predict and no_predict cannot be combined")
        own = [part.id for part in self.yours if part.instead_of is None]
        for part in self.yours:
            if part.instead_of is not None and part.instead_of not in own:
                raise ValueError(f"part {part.id}: instead_of must be another part of this exercise")
        return self


class Module(Strict):
    """One module of the course: `module.yaml`."""

    format: Literal[1]
    id: ModuleId
    title: Text
    summary: Text
    hours: float = Field(gt=0)
    lesson: RelativePath = "lesson.md"
    further_lessons: tuple[RelativePath, ...] = Field(default=(), description="the parts of a long lesson after the first")
    needs: tuple[ModuleId, ...] = ()
    lab: Labs
    exercises: tuple[Exercise, ...] = Field(min_length=1)

    def exercise(self, exercise_id: str) -> Exercise | None:
        """The exercise of that number, or None."""
        return next((exercise for exercise in self.exercises if exercise.id == exercise_id), None)
