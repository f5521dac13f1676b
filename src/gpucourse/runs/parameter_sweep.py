"""`run --sweep`: run one exercise with several values of a parameter, and create one record, one table and one plot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.context import Context
from gpucourse.errors import (
    DamagedFile,
    ExerciseFailed,
    GpucourseError,
    Interrupted,
    MissingError,
    UnknownName,
    UnreachableError,
    UsageError,
)
from gpucourse.model.event import Note, Watcher
from gpucourse.model.fields import Scalar
from gpucourse.model.launching import Parameter
from gpucourse.model.manifest import Exercise, Plot
from gpucourse.model.node import is_simulated
from gpucourse.model.record import RunRecord
from gpucourse.model.report import Grid
from gpucourse.model.sweep import Point, Sweep
from gpucourse.report import grids
from gpucourse.report.markdown import table as as_markdown
from gpucourse.runs import finish, results
from gpucourse.runs.resolve import RunRequest, resolve
from gpucourse.runs.run import RunResult, run
from gpucourse.runs.slurm_sweep import ArrayOfRuns
from gpucourse.storage import write_text
from gpucourse.units import now_utc
from gpucourse.workspace import runs
from gpucourse.workspace.files import check_record, copy_file, read_record, write_record
from gpucourse.workspace.lock import try_lock
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.course.catalog import Catalog


MAX_VALUES = 32
MAX_ROWS = 6
_OPEN = "running"  # the state of a point whose run has not ended, or is not collected

RunValue = Callable[[Scalar, int, Callable[[Context], RunResult]], RunResult]


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """A sweep that has ended, its folder, and the files to look at.

    `own_script`: the name of the learner's script, if one ran instead of the exercise's. The files are then in `folder`, and
    nothing is handed in.
    """

    sweep: Sweep
    folder: Path
    files: tuple[Path, ...]
    own_script: str = ""


def values_of(catalog: Catalog, run_request: RunRequest, assignment: str) -> tuple[Parameter, tuple[Scalar, ...]]:
    """Return the parameter and the values in `batch_size=16,32,64`. Each value is checked before anything starts.

    Raises UnknownName for a parameter that the exercise does not have. Raises UsageError for a value that is not accepted or
    appears twice, for fewer than two values, and for a parameter that is also set with --set.
    """
    from gpucourse.course.parameters import read_value, resolve

    _, exercise = catalog.exercise(run_request.exercise)
    name, equals, listing = assignment.partition("=")
    name = name.strip().removeprefix("--").replace("-", "_")
    texts = [text.strip() for text in listing.split(",")]
    example = f"gpucourse run {exercise.id} --sweep {name or 'size'}=1,2,3"
    if exercise.launch.traits.is_terminal:
        raise UsageError(
            f"{exercise.id} opens a session in your own terminal, so --sweep cannot run it", hint=f"gpucourse run {exercise.id}"
        )
    if not equals or not name:
        raise UsageError(f"--sweep {assignment}: not of the form name=1,2,3", hint=example)
    names = [parameter.name for parameter in exercise.parameters]
    parameter = exercise.parameter(name)
    if parameter is None:
        raise UnknownName("parameter", name, names, hint=f"parameters of {exercise.id}: {', '.join(names) or 'none'}")
    if name in {key.removeprefix("--").replace("-", "_") for key in run_request.settings}:
        raise UsageError(f"{name} is both swept and set", hint=example)
    if len(texts) < 2 or not all(texts):
        raise UsageError(f"--sweep {assignment}: at least two values are needed, with commas between them", hint=example)
    if len(texts) > MAX_VALUES:
        raise UsageError(f"--sweep {name}: {len(texts)} values are more than {MAX_VALUES}", hint="sweep in several parts")
    resolve(exercise, run_request.settings, local=True)
    values = tuple(read_value(exercise, parameter, text, option="--sweep") for text in texts)
    if len(set(values)) < len(values):
        duplicate = next(value for value in values if values.count(value) > 1)
        raise UsageError(f"--sweep {assignment}: {duplicate} appears twice", hint="name each value once")
    return parameter, values


def sweep(
    context: Context,
    run_request: RunRequest,
    parameter: Parameter,
    values: Sequence[Scalar],
    run_one: RunValue,
) -> SweepResult:
    """Run the exercise with every value, one after the other, and return the results. If a value fails, the sweep continues.

    On a Slurm cluster that other people share, the runs are one job array if the cluster accepts it: see `slurm_sweep`.

    `run_one` is called with the value, its number (from 1) and the function that runs it, so that the caller can show the run.
    Results are kept even if the sweep is stopped. Raises the errors that prevent the first run from starting, such as
    MissingError without a lab, and Interrupted when the user presses Ctrl-C.
    """
    _, exercise = context.catalog.exercise(run_request.exercise)
    place = run_request.place
    sweep_id = runs.new_run(context.paths, place)
    files = context.paths.run(place, sweep_id)
    record = Sweep(
        id=sweep_id,
        exercise=exercise.id,
        place=place if run_request.script else None,
        parameter=parameter.name,
        unit=parameter.unit,
        created=now_utc(),
        settings=dict(run_request.settings),
        values=list(values),
    )
    requests = [_set_value(run_request, parameter, value) for value in values]

    def keep_runs(run_ids: Sequence[str]) -> None:
        """Record the runs of a job array, so that a later command can complete the sweep."""
        record.points = [Point(value=value, run=run_id, state=_OPEN) for value, run_id in zip(values, run_ids, strict=True)]
        _write(context.paths, exercise, record, files)

    try:
        with ArrayOfRuns(requests, keep_runs) as array:
            for number, value in enumerate(values, 1):
                point = _point(context.watch, array, parameter, value, number, run_one)
                record.points[number - 1 : number] = [point]
                grid = _write(context.paths, exercise, record, files)
    except BaseException as error:
        if record.points:
            if not array.run_ids:
                record.state, record.ended = "stopped", now_utc()
            _write(context.paths, exercise, record, files)
        else:  # nothing ran, so nothing is kept
            files.folder.rmdir()
        is_interrupted = isinstance(error, (KeyboardInterrupt, Interrupted))
        if is_interrupted and (record.points or array.run_ids):
            raise _make_stop_error(record, files, array, error) from error
        raise
    own_script = run_request.script.name if run_request.script else ""
    if any(point.state == _OPEN for point in record.points):
        return SweepResult(sweep=record, folder=files.folder, files=(files.sweep,), own_script=own_script)
    record.state, record.ended = "done", now_utc()
    outputs = _finish(context, exercise, record, grid, files, own_script)
    return SweepResult(sweep=record, folder=files.folder, files=outputs, own_script=own_script)


def complete_sweeps(context: Context, place: str | None = None) -> None:
    """Complete the record, table and plot of each sweep whose command ended before the runs of its job array.

    A sweep is complete when the outputs of all its runs are collected. A sweep that a command still follows is left alone.

    `place`: an exercise or a script. If it is None, all sweeps are completed.
    """
    for folder in sorted(runs.list_folders(context.paths, place)):
        files = RunPaths(folder)
        if not files.sweep.is_file():
            continue
        try:
            record = read_sweep(context.paths, files)
            if record.state == "running" and len(record.points) == len(record.values):
                _complete(context, record, files)
        except GpucourseError as error:
            context.watch(Note(text=f"a sweep is not complete: {error.what}", level="warning"))


def read_sweep(paths: WorkspacePaths, files: RunPaths) -> Sweep:
    """Return the record of a sweep. Raises DamagedFile if the record is damaged."""
    record = read_record(files.sweep, Sweep)
    if record is None or files.folder != paths.run(record.folder, record.id).folder:
        raise DamagedFile(files.sweep, "it is the record of another sweep")
    check_record(files.sweep, names=[point.run for point in record.points if point.run])
    return record


def _complete(context: Context, record: Sweep, files: RunPaths) -> None:
    """Complete the record if no command follows the sweep and all its runs have ended."""
    lock = runs.lock_of(context.paths, record.points[-1].run or record.id)  # the lock of a run, which the sweep's command holds
    with try_lock(lock, f"complete the sweep {record.id}") as has_lock:
        if not has_lock:
            return
        by_id = {run_record.id: run_record for run_record in runs.readable(context.paths, record.folder)[0]}
        for number, point in enumerate(record.points):
            run_record = by_id.get(point.run or "")
            if point.state == _OPEN and run_record is None:
                record.points[number] = replace(point, state="lost", error="its record is gone")
            elif point.state == _OPEN and run_record is not None and run_record.collected:
                record.points[number] = _describe_run(point.value, run_record)
        if any(point.state == _OPEN for point in record.points):
            return
        _, exercise = context.catalog.exercise(record.exercise)
        record.state, record.ended = "done", now_utc()
        grid = _write(context.paths, exercise, record, files)
        outputs = _finish(context, exercise, record, grid, files, Path(record.place).name if record.place else "")
    context.watch(Note(text=f"the sweep {record.id} over {record.parameter} is complete: {outputs[1]}"))


def _make_stop_error(record: Sweep, files: RunPaths, array: ArrayOfRuns, error: BaseException) -> Interrupted:
    """Return the error for a sweep that the user stopped. The jobs of an array continue."""
    count = sum(point.state != _OPEN for point in record.points)
    message = f"the sweep stopped after {count} of {len(record.values)} values"
    if array.run_ids:
        return Interrupted(
            f"{message}; its {len(array.run_ids)} jobs continue",
            hint=f"gpucourse runs {record.place or record.exercise} shows their states, and completes the sweep when all have "
            "ended\ngpucourse cancel RUN stops one",
        )
    reason = error.what if isinstance(error, Interrupted) else "interrupted"
    return Interrupted(
        f"{message}; saved in {files.folder}: {reason}",
        hint=error.hint if isinstance(error, Interrupted) else f"gpucourse runs {record.exercise}",
    )


def _set_value(run_request: RunRequest, parameter: Parameter, value: Scalar) -> RunRequest:
    return replace(run_request, settings={**run_request.settings, parameter.name: _spell(value)})


def _spell(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _point(watch: Watcher, array: ArrayOfRuns, parameter: Parameter, value: Scalar, number: int, run_one: RunValue) -> Point:
    def run_here(watched: Context) -> RunResult:
        if array.submit(watched):
            return array.follow(watched, number)
        return run(watched, resolve(watched, array.requests[number - 1]))

    try:
        ran = run_one(value, number, run_here)
    except Interrupted:
        raise
    except GpucourseError as error:
        if number == 1 and not array.run_ids:
            raise
        watch(Note(text=f"{parameter.name}={_spell(value)}: {error.what}", level="warning"))
        if array.run_ids:
            return Point(value=value, run=array.run_ids[number - 1], state=_OPEN, error=error.what)
        return Point(value=value, state="failed", error=error.what)
    return _describe_run(value, ran.followed_run.record if ran.followed_run else ran.record)


def _describe_run(value: object, record: RunRecord) -> Point:
    """Return the point of a run that has ended."""
    return Point(
        value=value,
        run=record.id,
        state=record.state,
        verdict=record.verdict,
        seconds=max((end.seconds or 0.0 for end in record.node_exits), default=None),
        error=record.error or "",
    )


def _write(paths: WorkspacePaths, exercise: Exercise, record: Sweep, files: RunPaths) -> Grid:
    """Store the record with the current table; return the table."""
    by_value = _metrics(paths, record)
    for run_record, metrics in by_value.values():
        record.mode, record.device = run_record.mode, str(metrics.get("device") or "")
    grid = _make_grid(exercise, record, {str(value): metrics for value, (_, metrics) in by_value.items()})
    record.title, record.columns, record.numeric = grid.title, list(grid.columns), list(grid.numeric)
    record.rows = [list(row) for row in grid.rows]
    write_record(files.sweep, record)
    return grid


def _make_grid(exercise: Exercise, record: Sweep, by_label: Mapping[str, Mapping[str, Any]]) -> Grid:
    """Return the table of the measurements. Values without measurements get a row, too."""
    summary = [(str(point.value), point.state, point.verdict or "", point.run or "") for point in record.points]
    grid = _table(exercise, by_label)
    if grid is None or len(by_label) < 2:
        columns = (record.parameter, "state", "checks", "run")
        return Grid(title="Every value", columns=columns, rows=tuple(summary), numeric=(False,) * 4)
    nothing = [grids.NOTHING] * (len(grid.columns) - 2)
    remaining_rows = [(row[0], row[1], *nothing) for row in summary if row[0] not in by_label]
    return replace(grid, columns=(record.parameter, *grid.columns[1:]), rows=(*grid.rows, *remaining_rows), note="")


def _table(exercise: Exercise, metrics: Mapping[str, Mapping[str, Any]]) -> Grid | None:
    """Return one table of the exercise with the rows of all values: the table whose rows are plotted, otherwise the first
    table.

    For a long table, use only the last row of each run.
    """
    plotted = {plot.rows for plot in exercise.plots}
    for table in sorted(exercise.tables, key=lambda table: table.rows not in plotted):
        rows = {value: grids.rows_of(table.rows, content) for value, content in metrics.items()}
        if not any(rows.values()):
            continue
        if max(map(len, rows.values())) <= MAX_ROWS:
            return grids.merge_into_grid(table, metrics)
        short = table.model_copy(update={"rows": "metrics.rows", "title": f"{table.title} (the last row of each run)"})
        return grids.merge_into_grid(short, {value: {"rows": content[-1:]} for value, content in rows.items()})
    return None


def _finish(
    context: Context, exercise: Exercise, record: Sweep, grid: Grid, files: RunPaths, own_script: str
) -> tuple[Path, ...]:
    """Write the plot, the table as text and the seal; return the files to look at.

    For the exercise's own script, copy these files to the deliverables.
    """
    pictures = _draw(context, exercise, record, files.folder)
    record.pictures = [path.name for path in pictures]
    write_record(files.sweep, record)
    about = f"# {own_script or f'{exercise.id} {exercise.title}'}, by {record.parameter}"
    origin = f"{record.device} · mode: {record.mode} · sweep {record.id}"
    write_text(files.sweep_table, f"{about}\n\n{origin}\n\n{as_markdown(grid)}\n")
    finish.seal(context.paths.run(record.folder, record.id), str(record.mode))
    outputs = (files.sweep, files.sweep_table, *pictures)
    if own_script:
        return outputs
    copies: list[Path] = []
    for source in outputs:
        target = context.paths.sweep_deliverable(exercise.id, record.parameter, source.suffix)
        copy_file(source, target)
        copies.append(target)
    return tuple(copies)


def _draw(context: Context, exercise: Exercise, record: Sweep, folder: Path) -> list[Path]:
    from gpucourse.figures.plots import draw

    by_value = {value: metrics for value, (_, metrics) in _metrics(context.paths, record).items()}
    origin = f"{record.device}, simulated nodes (mode: local)" if is_simulated(record.mode or "") else record.device
    for plot, combined in list_plots(exercise, record, by_value):
        try:
            return draw(plot, combined, subtitle=f"{exercise.id} · {origin} · sweep {record.id}", folder=folder)
        except MissingError as error:
            context.watch(Note(text=f"no picture of the sweep: {error.what}", level="warning"))
    return []


def list_plots(
    exercise: Exercise, record: Sweep, by_value: Mapping[Any, Mapping[str, Any]]
) -> Iterator[tuple[Plot, dict[str, Any]]]:
    """Yield the plots that are possible for a sweep, each with the metrics to draw it from. `by_value` has the metrics of the
    runs that succeeded."""
    from gpucourse.figures.several_runs import make_sweep_plot

    for plot in exercise.plots:
        rows = [(value, grids.rows_of(plot.rows, metrics)) for value, metrics in by_value.items()]
        if sum(bool(value_rows) for _, value_rows in rows) >= 2:
            yield make_sweep_plot(plot, record.parameter, record.unit, rows)


def _metrics(paths: WorkspacePaths, record: Sweep) -> dict[Any, tuple[RunRecord, Mapping[str, Any]]]:
    """Return the metrics of every value whose run succeeded."""
    by_id = {run_record.id: run_record for run_record in runs.readable(paths, record.folder)[0]}
    by_value: dict[Any, tuple[RunRecord, Mapping[str, Any]]] = {}
    for point in record.points:
        point_run = by_id.get(point.run or "")
        if point_run is not None and point.state == "succeeded":
            by_value[point.value] = (point_run, results.material(paths, point_run)["metrics"])
    return by_value


def make_failure(record: Sweep) -> GpucourseError | None:
    """Return an error if some values of the sweep failed, or are still open; otherwise, return None."""
    if open_points := [point for point in record.points if point.state == _OPEN]:
        return UnreachableError(
            f"{len(open_points)} of {len(record.points)} runs were not followed to their end: {open_points[0].error}",
            hint=f"gpucourse runs {record.place or record.exercise} completes the sweep when all have ended",
        )
    failed_values = [str(point.value) for point in record.points if point.state != "succeeded"]
    if not failed_values:
        return None
    runs_of = [point.run for point in record.points if point.run and point.state != "succeeded"]
    return ExerciseFailed(
        f"{len(failed_values)} of {len(record.points)} values of {record.parameter} failed: {', '.join(failed_values)}",
        hint=f"gpucourse logs {runs_of[0]}" if runs_of else f"gpucourse runs {record.exercise}",
    )
