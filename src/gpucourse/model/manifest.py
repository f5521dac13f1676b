"""The manifest of a module, which a person writes. An unknown key, a wrong type or a bad value is an error.

`course.schema` generates the JSON Schema for editors from these classes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from gpucourse.model.check import Check, RepeatedValue
from gpucourse.model.fields import (
    NOT_EMPTY,
    Bytes,
    ExerciseId,
    FileName,
    ModuleId,
    Name,
    ProgramName,
    RelativePath,
    Rows,
    Seconds,
    Slug,
    Strict,
    Text,
)
from gpucourse.model.labs import Labs
from gpucourse.model.launching import Launch, Parameter
from gpucourse.model.questions import Prediction, Question

FORMAT = 1


class MetricsColumn(Strict):
    """One column of the table that a run shows. `key` is the key in each row. A narrow terminal leaves out `spare` columns."""

    key: Name = Field(description="the key in each row")
    title: Text = Field(description="the heading of the column, with the unit")
    digits: int | None = Field(
        default=None, ge=0, le=9, description="digits after the decimal point; by default, the number is unchanged"
    )
    spare: bool = Field(default=False, description="left out first on a narrow terminal, as p20 and p80 always are")


class MetricsTable(Strict):
    """Rows of the metrics, shown after a run."""

    title: Text = Field(description="the heading above the table")
    rows: Rows = Field(description="the list in the metrics whose elements are the rows, such as metrics.rows")
    columns: tuple[MetricsColumn, ...] = Field(min_length=1, description="the columns, from left to right")
    main: bool = Field(default=False, description="true: a run's result shows this table; by default, it shows the first")
    keep: tuple[Text, ...] = Field(
        default=(), description="rows, by their text in the first column, that a run's result keeps if not all rows fit"
    )


class Series(Strict):
    """One line or group of bars. `key` is the key in each row; `low` and `high` are the keys of the two ends of its spread."""

    key: Name = Field(description="the key in each row that is drawn vertically")
    label: Text = Field(description="its name in the legend")
    low: Name | None = Field(default=None, description="the key of the lower end of the band around the line; requires `high`")
    high: Name | None = Field(default=None, description="the key of the upper end of the band; requires `low`")
    reason: Name | None = Field(
        default=None, description="the key in the rows, such as state, that says why a row has no value"
    )

    @model_validator(mode="after")
    def _require_both_ends(self) -> Series:
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high belong together")
        return self


class Plot(Strict):
    """A plot of rows of the metrics. Axis titles include the unit.

    `ideal` draws y = first value × x / first x. `ideal_key` draws the ideal value that each row contains. `by` draws a separate
    line for each value of that key.
    """

    file: FileName = Field(description="the picture's name without an ending: FILE.png and FILE.svg are drawn")
    title: Text = Field(description="the heading above the picture")
    kind: Literal["line", "bar"] = Field(description="points with lines between them, or bars")
    rows: Rows = Field(description="the list in the metrics whose elements are the points, such as metrics.rows")
    x: Name = Field(description="the key in each row for the horizontal position")
    by: Name | None = Field(default=None, description="a key in the rows: each of its values gets a separate line")
    series: tuple[Series, ...] = Field(min_length=1, description="what is drawn vertically: a line, or a bar at each position")
    x_title: Text = Field(description="the title of the lower axis, with the unit")
    y_title: Text = Field(description="the title of the left axis, with the unit")
    connect: bool = Field(default=True, description="false: no line from point to point")
    log_x: bool = Field(default=False, description="a logarithmic lower axis")
    log_y: bool = Field(default=False, description="a logarithmic left axis; bars become points")
    y_scale: float = Field(default=1.0, gt=0, description="multiply each value by this number: 1.0e+12 draws TFLOP/s as FLOP/s")
    ideal: bool = Field(default=False, description="also draw y in proportion to x, from the first point on")
    ideal_key: Name | None = Field(default=None, description="also draw this key of each row as the ideal value")
    ideal_label: Text = Field(default="ideal", description="the name of the ideal in the legend")
    evidence: Literal["logic", "gpu"] = Field(
        default="logic", description="gpu: drawn if a GPU was measured, now or for the course's record"
    )

    @model_validator(mode="after")
    def _refuse_two_ideals(self) -> Plot:
        if self.ideal and self.ideal_key:
            raise ValueError("ideal and ideal_key cannot be combined")
        if self.ideal and self.kind == "bar":
            raise ValueError("bars have words below them, and words have no ideal line: use ideal_key")
        if self.by and (self.kind == "bar" or self.ideal):
            raise ValueError("`by` is for lines and cannot be combined with `ideal`: `ideal_key` draws one for all lines")
        return self


class LearnerPart(Strict):
    """A part that the learner writes in one file. The course's judge, or checks of the run, decide whether it is right.

    The judge is `judges/<file>` next to the exercise's scripts, always with the ending .py. The solution is `solutions/<file>`,
    and a second solution is `solutions/other/<file>`.
    """

    id: Slug = Field(description="its name, which rubrics and messages use")
    title: Text = Field(description="what it is, in a few words")
    file: RelativePath = Field(description="a file next to the script; the learner edits the copy in the workspace")
    write: Text = Field(description="what to write, as an instruction: Write the body of busbw: ...")
    judge: bool = Field(default=True, description="false: only checks of a run judge it")
    checks: tuple[Slug, ...] = Field(
        default=(), description="checks of the run that judge it: open until the learner changes the file"
    )
    torch: bool = Field(default=True, description="whether the judge needs torch")
    packages: tuple[Name, ...] = Field(default=(), description="what else the judge needs on the learner's computer: [triton]")
    limit: Seconds = Field(default=20.0, description="how long the judge may take")
    submit: bool = Field(default=False, description="a batch file: once it is correct, run submits it instead of the course's")
    instead_of: Slug | None = Field(
        default=None,
        description="an earlier part that this part can replace if the earlier one cannot be tried: one of the two is enough",
    )


class Hint(Strict):
    """A hint. `part` names the part that it helps with. Once that part is right, other hints come first."""

    text: Text = Field(description="the hint")
    part: Slug | None = Field(default=None, description="the part that it is about, if the exercise has several")
    ways: tuple[Slug, ...] = Field(
        default=(),
        description="verdicts after which this hint is shown first: wrong ways that the judge names, or checks of the part",
    )


class _TextOr:
    """A type of value in a manifest that may also be a text. Its JSON Schema allows both."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "pattern": NOT_EMPTY}, handler(core_schema)]}


TextOrHint = Annotated[Hint, BeforeValidator(lambda value: {"text": value} if isinstance(value, str) else value), _TextOr()]


class CodeFault(Strict):
    """A typical error in a benchmark. `break --how code` puts it into a copy of the exercise, and the learner finds it.

    `was` is a text that occurs once in `file` (the script, or a file uploaded with it); `becomes` replaces it.
    `judges/fault_<id>.py`, with _ in place of each -, judges the repaired copy.
    """

    id: Slug = Field(description="the word with which a learner names it")
    title: Text = Field(description="what is wrong, in the words of the list from which the learner chooses")
    file: RelativePath = Field(description="the file that is changed: the script, or one of files")
    was: Text = Field(description="a text that occurs once in the file")
    becomes: str = Field(description="what replaces it")
    hints: tuple[Text, ...] = Field(min_length=2, description="shown one at a time after a wrong diagnosis")
    explanation: Text = Field(description="why it matters; shown after the right diagnosis")
    torch: bool = Field(default=True, description="whether the judge needs torch")


class Deliverable(Strict):
    """A file that the learner hands in. `source` is a pattern in the run's folder; every match is copied. `evidence: gpu` means
    that only a run on a GPU produces the file."""

    title: Text = Field(description="what it is")
    source: RelativePath = Field(
        description="a pattern in the run's folder: metrics.json, sums.png, logs/*.log, outputs/*/report.txt"
    )
    evidence: Literal["logic", "gpu"] = Field(default="logic", description="gpu: only a run on a GPU produces it")


class Exercise(Strict):
    """One exercise: a script, its parameters, its launch, and its checks and questions."""

    id: ExerciseId = Field(description='module and number, in quotes: "3.2"')
    title: Text = Field(description="its name in lists")
    goal: Text = Field(description="what the learner can do afterwards, in a sentence")
    minutes: int = Field(ge=1, description="how long it takes, with reading")
    script: RelativePath = Field(description="the script, a file in the module's folder in exercises/")
    files: tuple[RelativePath, ...] = Field(
        default=(), description="what is uploaded with the script: files of its folder or of exercises/shared, or whole folders"
    )
    packages: tuple[Name, ...] = Field(
        default=("torch",), description="packages that the script imports; the nodes are checked for them before it starts"
    )
    programs: tuple[ProgramName, ...] = Field(
        default=(), description="programs that the script starts; the nodes are checked for them before it starts"
    )
    optional_programs: tuple[ProgramName, ...] = Field(
        default=(), description="programs that only a part of the exercise needs; the script itself looks for them"
    )
    builds_on: tuple[ExerciseId, ...] = Field(
        default=(), description="exercises whose newest measurements are uploaded with it, as earlier-ID-RUN.json"
    )
    launch: Launch = Field(description="how it is started")
    parameters: tuple[Parameter, ...] = Field(default=(), description="what the learner may set; each is a flag of the script")
    outputs: tuple[RelativePath, ...] = Field(
        default=(),
        description="patterns for files in a node's work folder that are collected in addition to those in GPUCOURSE_OUT",
    )
    max_output: Bytes = Field(default=1 << 30, description="the largest file that is collected; by default 1 GiB")
    yours: tuple[LearnerPart, ...] = Field(default=(), description="what the learner writes")
    predict: Prediction | None = Field(default=None, description="what the learner predicts before the ranks start")
    no_predict: Text | None = Field(default=None, description="why there is nothing to predict")
    faults: tuple[CodeFault, ...] = Field(default=(), description="errors for `break --how code`")
    tasks: tuple[Text, ...] = Field(min_length=1, description="what to do, in order")
    questions: tuple[Question, ...] = Field(default=(), description="what is asked after a run")
    former_questions: tuple[Slug, ...] = Field(
        default=(), description="questions of earlier versions: answers to them are kept, but earn no points"
    )
    hints: tuple[TextOrHint, ...] = Field(
        min_length=1,
        description="from a nudge to the plain answer, one at a time; at least three. Each is a text, or a mapping (below)",
    )
    tables: tuple[MetricsTable, ...] = Field(default=(), description="tables of rows of the metrics")
    plots: tuple[Plot, ...] = Field(default=(), description="pictures of rows of the metrics")
    checks: tuple[Check, ...] = Field(default=(), description="what must hold after a run")
    same_again: tuple[RepeatedValue, ...] = Field(
        default=(), description="what grade --rerun compares, besides values checked with `equals`"
    )
    deliverables: tuple[Deliverable, ...] = Field(default=(), description="what the learner hands in")

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    @property
    def judge_command(self) -> str:
        """Return the command that judges the learner's parts: `try`, or `run` if no part has a judge."""
        return f"gpucourse {'try' if any(part.judge for part in self.yours) else 'run'} {self.id}"

    @property
    def mutation_command(self) -> str:
        """Return the command that answers a `mutation` question. The command asks which check the learner expects to fail."""
        return f"gpucourse run {self.id} --expect-red"

    @property
    def main_table(self) -> MetricsTable | None:
        """Return the table that a run's result shows: the one marked `main`, otherwise the first. Return None if there is no
        table."""
        return next((table for table in self.tables if table.main), next(iter(self.tables), None))

    @model_validator(mode="after")
    def _refuse_two_main_tables(self) -> Exercise:
        if sum(table.main for table in self.tables) > 1:
            raise ValueError("tables: only one can be main, because a run's result shows only one")
        return self

    @model_validator(mode="after")
    def _prediction_or_reason(self) -> Exercise:
        checks, files = {check.id for check in self.checks}, {self.script, *self.files}
        for question in self.questions:
            if question.kind == "mutation" and (question.check not in checks or question.edit not in files):
                raise ValueError(
                    f"question {question.id}: `check` must name a check of this exercise, "
                    "and `edit` its script or one of its files"
                )
        edits = [(question.check, question.edit) for question in self.questions if question.kind == "mutation"]
        if duplicate := next((edit for edit in edits if edits.count(edit) > 1), None):
            raise ValueError(f"two mutations edit {duplicate[1]} and name {duplicate[0]}: one run would answer both")
        if self.predict and self.no_predict:
            raise ValueError("predict and no_predict cannot be combined")
        part_ids = [part.id for part in self.yours if part.instead_of is None]
        for part in self.yours:
            if part.instead_of is not None and part.instead_of not in part_ids:
                raise ValueError(f"part {part.id}: instead_of must be another part of this exercise")
        for number, hint in enumerate(self.hints, 1):
            if hint.part is not None and hint.part not in {part.id for part in self.yours}:
                raise ValueError(f"hint {number}: {hint.part} is not a part of this exercise")
            if hint.ways and hint.part is None:
                raise ValueError(f"hint {number}: ways need a part")
        return self


class Module(Strict):
    """One module of the course: `module.yaml`."""

    format: Literal[1] = Field(description="the format of this file; 1")
    id: ModuleId = Field(description='the number of its folder, in quotes: "3" for 03-parallel-computing')
    title: Text = Field(description="its name in lists")
    summary: Text = Field(description="what it is about, in one or two sentences")
    hours: float = Field(gt=0, description="how long it takes, with reading; at least as long as its exercises together")
    lesson: RelativePath = Field(default="lesson.md", description="the lesson, in Markdown, next to this file")
    further_lessons: tuple[RelativePath, ...] = Field(default=(), description="the parts of a long lesson after the first")
    needs: tuple[ModuleId, ...] = Field(default=(), description="modules to do before it")
    lab: Labs = Field(description="what its exercises run on, for each target")
    exercises: tuple[Exercise, ...] = Field(min_length=1, description="its exercises, in order")

    def exercise(self, exercise_id: str) -> Exercise | None:
        """Return the exercise of that number, or None."""
        return next((exercise for exercise in self.exercises if exercise.id == exercise_id), None)
