"""The content of the page of one run: its record, measurements, verdict, logs and edits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, TypeVar

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.figures.overlay import RecordedPlot
from gpucourse.figures.plots import collect_points
from gpucourse.figures.rows import Drawable
from gpucourse.grading.checks import is_gpu_evidence
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
from gpucourse.runs.parts import list_changed_files
from gpucourse.runs.results import read_prediction
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_json, read_metrics
from gpucourse.workspace.paths import RunPaths

T = TypeVar("T")

LOG_BYTES = 64 << 10
"""The maximum number of bytes of a log on a page: a quarter from its beginning, three quarters from its end."""

ALL_LOGS_BYTES, MIN_LOG_BYTES, MAX_LOGS = 512 << 10, 2 << 10, 256

MAX_LINES, MIN_LOG_LINES = 6000, 20
"""The maximum number of lines of all logs together on a page, and the number of lines that each log may always have."""


@dataclass(frozen=True, kw_only=True)
class LogExcerpt:
    """One log, or its beginning and `end`. `size` is the size of the whole file in bytes.

    `times`: the size of the file after each of its pieces had arrived, in order, each with the time in seconds since 1970.
    """

    node: str
    rank: int | None
    begin: bytes
    end: bytes
    size: int
    times: tuple[tuple[int, float], ...] = ()

    @property
    def left_out(self) -> int:
        """Return the number of bytes between the beginning and the end."""
        return self.size - len(self.begin) - len(self.end)

    def find_time(self, place: int) -> float:
        """Return when the first `place` bytes of the log had arrived, or 0 if no times were recorded."""
        if not self.times:
            return 0.0
        return self.times[min(bisect_left(self.times, place, key=itemgetter(0)), len(self.times) - 1)][1]


@dataclass(frozen=True, kw_only=True)
class RunContent:
    """One run: its record, its measurements and its verdict.

    `exercise`: None for a learner's own script, and for an exercise that the course no longer has.
    `logs_left_out`: how many logs beyond MAX_LOGS are left out.
    `trouble`: a sentence for each unreadable file.
    `edits`: the learner's changes to the exercise's files before the run.
    `changed_files`: the learner's files that have changed since the run.
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
    changed_files: tuple[str, ...] = ()
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
        return _list_plots(self.exercise, self.metrics, self.record.mode, self.recorded)


class RunReader:
    """Read runs of one workspace. It reads the course's GPU record of an exercise only once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._recorded: dict[str, dict[str, RecordedPlot]] = {}

    def read(self, record: RunRecord) -> RunContent:
        """Return everything that is stored about a run, each file up to a limit. `trouble` names unreadable files."""
        content = read_run(self._context, record)
        if content.exercise is None or is_gpu_evidence(content.metrics, record.mode):
            return content
        if record.exercise not in self._recorded:
            self._recorded[record.exercise] = list_recorded_plots(self._context, content.exercise)
        return replace(content, recorded=self._recorded[record.exercise])

    def read_plots(self, record: RunRecord) -> dict[str, Drawable]:
        """Return the points that a run measured for the exercise's plots, by their files. Nothing else of the run is read."""
        try:
            _, exercise = self._context.catalog.exercise(record.exercise)
            metrics = read_metrics(runs.files_of(self._context.paths, record).metrics)
        except GpucourseError:
            return {}
        plots = _list_plots(exercise, metrics if isinstance(metrics, dict) else {}, record.mode, {})
        return {plot.file: data for plot, data in plots}


def _list_plots(
    exercise: Exercise | None, metrics: Mapping[str, Any], mode: str, recorded: Mapping[str, RecordedPlot]
) -> Iterator[tuple[Plot, Drawable]]:
    """Yield the plots with points from a run or, by their files, from the course's GPU record."""
    with_gpu = is_gpu_evidence(metrics, mode)
    for plot in exercise.plots if exercise else ():
        record = recorded.get(plot.file)
        if not with_gpu and plot.evidence == "gpu" and record is None:
            continue
        try:
            yield plot, collect_points(plot, metrics, record)
        except MissingError:  # no run measured anything for it
            continue


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
    return RunContent(
        record=record,
        files=files,
        exercise=exercise,
        metrics=metrics if isinstance(metrics, dict) else {},
        verdict=None if record.own_script and not record.brings_checks else verdict,
        prediction=prediction,
        environment=read_nodes(environment),
        logs=tuple(read_logs(files, trouble)),
        logs_left_out=max(0, len(files.all_logs()) - MAX_LOGS),
        trouble=tuple(dict.fromkeys(trouble)),
        edits=read_edits(context, exercise, record) if exercise else (),
        changed_files=tuple(list_changed_files(context, exercise, record)) if exercise else (),
    )


def read_nodes(environment: object) -> dict[str, Mapping[str, Any]]:
    """Return the facts about each node in the environment that a run recorded, without those that are damaged."""
    nodes = environment.get("nodes") if isinstance(environment, dict) else None
    return {name: facts for name, facts in nodes.items() if isinstance(facts, dict)} if isinstance(nodes, dict) else {}


def read_logs(files: RunPaths, trouble: list[str]) -> Iterator[LogExcerpt]:
    """Yield the beginning and the end of each log: first the ranks in order, then the launchers.

    A sentence for each log that cannot be read is added to `trouble`.
    """
    logs = list(files.all_logs().items())[:MAX_LOGS]
    room = max(MIN_LOG_BYTES, min(LOG_BYTES, ALL_LOGS_BYTES // max(1, len(logs))))
    max_lines = max(MIN_LOG_LINES, MAX_LINES // max(1, len(logs)))
    for (node, rank), path in logs:
        try:
            begin, end, size = read_ends(path, room // 4, room - room // 4)
        except (OSError, OutsideError) as error:
            trouble.append(f"{path.name} cannot be read: {error.strerror if isinstance(error, OSError) else error}")
            continue
        begin, end = _limit_lines(begin, end, max_lines)
        times = tuple(_read_times(files, node, rank, room))
        yield LogExcerpt(node=node, rank=rank, begin=begin, end=end, size=size, times=times)


def _limit_lines(begin: bytes, end: bytes, max_lines: int) -> tuple[bytes, bytes]:
    """Return at most `max_lines` lines of a log: a quarter of them from its beginning, and three quarters from its end. If
    `end` is empty, `begin` is the whole log."""
    if begin.count(b"\n") + end.count(b"\n") <= max_lines:
        return begin, end
    first = max_lines // 4
    head, tail = begin.split(b"\n", first), (end or begin).rsplit(b"\n", max_lines - first + 1)
    if len(head) > first:
        begin = begin[: len(begin) - len(head[-1])]
    if len(tail) > max_lines - first + 1:
        end = b"\n".join(tail[1:])
    return begin, end


def _read_times(files: RunPaths, node: str, rank: int | None, room: int) -> Iterator[tuple[int, float]]:
    """Yield the arrival times of the lines at the beginning and the end of a log, in order. Stop at the first entry that is
    damaged."""
    last = 0
    try:
        begin, end, _ = read_ends(files.rank_times(node, rank), room, 3 * room)
        for part in (begin, end):
            for note in part.split(b"\n")[int(part is end) : -1]:
                size, moment = note.split()
                last = max(last, int(size))
                yield last, float(moment)
    except (OSError, OutsideError, ValueError):  # lines without a time are shown in the order of their log
        return
