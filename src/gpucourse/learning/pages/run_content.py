"""The content of the page of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.figures.overlay import RecordedPlot
from gpucourse.figures.plots import collect_points
from gpucourse.figures.rows import Drawable
from gpucourse.grading.checks import on_gpu
from gpucourse.grading.edits import FileEdit
from gpucourse.learning.review.edits import read_edits
from gpucourse.model.answer import PredictionResult
from gpucourse.model.manifest import Exercise, Plot
from gpucourse.model.record import RunRecord
from gpucourse.model.report import Grid
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.outside.files import read_ends
from gpucourse.outside.names import OutsideError
from gpucourse.report import grids
from gpucourse.runs.finish import list_recorded_plots
from gpucourse.runs.follow import read_run_verdict
from gpucourse.runs.results import read_prediction
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_json, read_metrics
from gpucourse.workspace.paths import RunPaths

T = TypeVar("T")

LOG_BYTES = 64 << 10
"""The most bytes of a log on a page: a quarter from its beginning, three quarters from its end."""

ALL_LOGS_BYTES, MIN_LOG_BYTES, MAX_LOGS = 512 << 10, 2 << 10, 256


@dataclass(frozen=True, kw_only=True)
class LogExcerpt:
    """One log, or its beginning and `end`. `size` is the size of the whole file in bytes."""

    node: str
    rank: int | None
    begin: bytes
    end: bytes
    size: int

    @property
    def left_out(self) -> int:
        """Return the number of bytes between the beginning and the end."""
        return self.size - len(self.begin) - len(self.end)


@dataclass(frozen=True, kw_only=True)
class RunContent:
    """One run: its record, its measurements and its verdict.

    `exercise`: None for a learner's own script, and for an exercise that the course no longer has.
    `logs_left_out`: how many logs beyond MAX_LOGS are left out.
    `trouble`: a sentence for each unreadable file.
    `edits`: the learner's changes to the exercise's files before the run.
    `recorded`: the course's GPU measurements for the plots, by their files.
    """

    record: RunRecord
    files: RunPaths
    exercise: Exercise | None
    metrics: Mapping[str, Any]
    verdict: ExerciseVerdict | None
    prediction: PredictionResult | None
    environment: Mapping[str, Mapping[str, Any]]
    logs: tuple[LogExcerpt, ...]
    logs_left_out: int
    trouble: tuple[str, ...]
    edits: tuple[FileEdit, ...] = ()
    recorded: Mapping[str, RecordedPlot] = field(default_factory=dict)

    def list_tables(self) -> list[Grid]:
        """Return the exercise's tables with rows from this run."""
        return [
            Grid(title=table.title, columns=grid.columns, rows=grid.rows, numeric=grid.numeric, note=grid.note)
            for table in (self.exercise.tables if self.exercise else ())
            if (grid := grids.merge_into_grid(table, {self.record.id: self.metrics}))
        ]

    def list_plots(self) -> Iterator[tuple[Plot, Drawable]]:
        """Yield the exercise's plots with points from this run or the course's GPU record."""
        with_gpu = on_gpu(self.metrics, self.record.mode)
        for plot in self.exercise.plots if self.exercise else ():
            record = self.recorded.get(plot.file)
            if not with_gpu and plot.evidence == "gpu" and record is None:
                continue
            try:
                yield plot, collect_points(plot, self.metrics, record)
            except MissingError:  # no run measured anything for it
                continue


class RunReader:
    """Reads runs of one workspace. It reads the course's GPU record of an exercise only once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._recorded: dict[str, dict[str, RecordedPlot]] = {}

    def read(self, record: RunRecord) -> RunContent:
        """Return everything that is stored about a run, each file up to a limit. `trouble` names unreadable files."""
        content = read_run(self._context, record)
        if content.exercise is None or on_gpu(content.metrics, record.mode):
            return content
        if record.exercise not in self._recorded:
            self._recorded[record.exercise] = list_recorded_plots(self._context, content.exercise)
        return replace(content, recorded=self._recorded[record.exercise])


def read_run(context: Context, record: RunRecord) -> RunContent:
    """Return everything that is stored about a run, without the course's GPU record."""
    files = runs.files_of(context.paths, record)
    trouble: list[str] = []
    try:
        exercise = None if record.own_script else context.catalog.exercise(record.exercise)[1]
    except GpucourseError as error:
        exercise = None
        trouble.append(error.what)

    def attempt(read: Callable[[], T]) -> T | None:
        try:
            return read()
        except GpucourseError as error:
            trouble.append(error.what)
            return None

    metrics = attempt(lambda: read_metrics(files.metrics))
    verdict = attempt(lambda: read_run_verdict(context.paths, record))
    prediction = attempt(lambda: read_prediction(context.paths, exercise, record)) if exercise else None
    environment = attempt(lambda: read_json(files.environment))
    logs = files.all_logs()
    return RunContent(
        record=record,
        files=files,
        exercise=exercise,
        metrics=metrics if isinstance(metrics, dict) else {},
        verdict=None if record.own_script and not record.brings_checks else verdict,
        prediction=prediction,
        environment=_read_nodes(environment),
        logs=tuple(_read_logs(files, trouble)),
        logs_left_out=max(0, len(logs) - MAX_LOGS),
        trouble=tuple(dict.fromkeys(trouble)),
        edits=read_edits(context, exercise, record) if exercise else (),
    )


def _read_nodes(environment: object) -> dict[str, Mapping[str, Any]]:
    nodes = environment.get("nodes") if isinstance(environment, dict) else None
    return {name: facts for name, facts in nodes.items() if isinstance(facts, dict)} if isinstance(nodes, dict) else {}


def _read_logs(files: RunPaths, trouble: list[str]) -> Iterator[LogExcerpt]:
    logs = list(files.all_logs().items())[:MAX_LOGS]
    room = max(MIN_LOG_BYTES, min(LOG_BYTES, ALL_LOGS_BYTES // max(1, len(logs))))
    for (node, rank), path in sorted(logs, key=lambda item: (item[0][1] is None, item[0][1] or 0, item[0][0])):
        try:
            begin, end, size = read_ends(path, room // 4, room - room // 4)
        except (OSError, OutsideError) as error:
            trouble.append(f"{path.name} cannot be read: {error.strerror if isinstance(error, OSError) else error}")
            continue
        yield LogExcerpt(node=node, rank=rank, begin=begin, end=end, size=size)
