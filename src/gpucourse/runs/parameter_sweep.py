"""`run --sweep`: run one exercise with several values of a parameter, and create one record, one table and one plot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.context import Context
from gpucourse.errors import ExerciseFailed, GpucourseError, Interrupted, MissingError, UnknownName, UsageError
from gpucourse.model.event import Note, Watcher
from gpucourse.model.fields import Scalar
from gpucourse.model.launching import Parameter
from gpucourse.model.manifest import Exercise
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
from gpucourse.workspace.files import copy_file, write_record
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.course.catalog import Catalog


MAX_VALUES = 32
MAX_ROWS = 6

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
    appears twice, for fewer than two values, and for a parameter that is also set.
    """
    from gpucourse.course.parameters import read_value, resolve

    _, exercise = catalog.exercise(run_request.exercise)
    name, equals, listing = assignment.partition("=")
    name = name.strip().removeprefix("--").replace("-", "_")
    texts = [text.strip() for text in listing.split(",")]
    example = f"gpucourse run {exercise.id} --sweep {name or 'size'}=1,2,3"
    if exercise.launch.traits.is_terminal:
        raise UsageError(f"{exercise.id} is a session at your own terminal: no --sweep", hint=f"gpucourse run {exercise.id}")
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
    """Run the exercise with every value, one after the other. If a value fails, the sweep continues.

    On a Slurm cluster of other people, the runs are one job array if the cluster accepts it: see `slurm_sweep`.

    `run_one` is called with the value, its number (from 1) and the function that runs it, so that the caller can show the run.
    Results are kept even if the sweep is stopped. Raises the errors of the first run before it starts (MissingError: no lab);
    Interrupted when the user presses Ctrl-C.
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
    try:
        with ArrayOfRuns(requests) as array:
            for number, value in enumerate(values, 1):
                record.points.append(_point(context.watch, array, parameter, value, number, run_one))
                grid = _write(context.paths, exercise, record, files)
    except BaseException as error:
        if record.points:
            record.state, record.ended = "stopped", now_utc()
            _write(context.paths, exercise, record, files)
        else:  # nothing ran: nothing is kept
            files.folder.rmdir()
        is_interrupted = isinstance(error, (KeyboardInterrupt, Interrupted))
        if is_interrupted and (record.points or array.run_ids):
            raise _make_stop_error(record, files, array, error) from error
        raise
    record.state, record.ended = "done", now_utc()
    own_script = run_request.script.name if run_request.script else ""
    outputs = _finish(context, exercise, record, grid, files, own_script)
    return SweepResult(sweep=record, folder=files.folder, files=outputs, own_script=own_script)


def _make_stop_error(record: Sweep, files: RunPaths, array: ArrayOfRuns, error: BaseException) -> Interrupted:
    """Return the error for a sweep that the user stopped. The jobs of an array continue."""
    what = f"the sweep stopped after {len(record.points)} of {len(record.values)} values"
    if array.run_ids:
        return Interrupted(
            f"{what}; its {len(array.run_ids)} jobs continue",
            hint=f"gpucourse runs shows their states, and gpucourse cancel RUN stops one\ngpucourse compare "
            f"{' '.join(array.run_ids)} compares their results",
        )
    reason = error.what if isinstance(error, Interrupted) else "interrupted"
    return Interrupted(
        f"{what}; saved in {files.folder}: {reason}",
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
        return Point(value=value, state="failed", error=error.what)
    record = ran.followed_run.record if ran.followed_run else ran.record
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
    """Return the table over all values: the table whose rows are plotted, otherwise the first table.

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
    from gpucourse.figures.several_runs import make_sweep_plot

    by_value = _metrics(context.paths, record)
    for plot in exercise.plots:
        rows = [(value, grids.rows_of(plot.rows, metrics)) for value, (_, metrics) in by_value.items()]
        if sum(bool(value_rows) for _, value_rows in rows) < 2:
            continue
        sweep_plot, combined = make_sweep_plot(plot, record.parameter, record.unit, rows)
        origin = f"{record.device}, simulated nodes (mode: local)" if is_simulated(record.mode or "") else record.device
        try:
            return draw(sweep_plot, combined, subtitle=f"{exercise.id} · {origin} · sweep {record.id}", folder=folder)
        except MissingError as error:
            context.watch(Note(text=f"no picture of the sweep: {error.what}", level="warning"))
    return []


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
    """Return an error if some values of the sweep failed; otherwise, return None."""
    failed_values = [str(point.value) for point in record.points if point.state != "succeeded"]
    if not failed_values:
        return None
    runs_of = [point.run for point in record.points if point.run and point.state != "succeeded"]
    return ExerciseFailed(
        f"{len(failed_values)} of {len(record.points)} values of {record.parameter} failed: {', '.join(failed_values)}",
        hint=f"gpucourse logs {runs_of[0]}" if runs_of else f"gpucourse runs {record.exercise}",
    )
