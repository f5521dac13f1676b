"""Sweeps for the page: the record of each sweep, with the points of its charts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.figures.rows import Drawable, drawable
from gpucourse.figures.several_runs import make_sweep_plot
from gpucourse.model.manifest import Exercise, Plot
from gpucourse.model.sweep import Sweep
from gpucourse.report import grids
from gpucourse.runs.parameter_sweep import read_sweep
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_metrics
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

MAX_SWEEPS = 40
"""The most sweeps on the page; the newest are shown."""


@dataclass(frozen=True, kw_only=True)
class SweepContent:
    """A sweep, its exercise (None if the course no longer has it), and a chart over its values, if any."""

    sweep: Sweep
    exercise: Exercise | None
    chart: tuple[Plot, Drawable] | None


def list_sweeps(context: Context) -> tuple[list[SweepContent], list[str]]:
    """Return the newest sweeps, newest first, and a sentence for each unreadable sweep."""
    folders = [RunPaths(folder) for folder in runs.list_folders(context.paths) if RunPaths(folder).sweep.is_file()]
    sweeps: list[SweepContent] = []
    errors: list[str] = []
    for files in sorted(folders, key=lambda item: item.folder.name, reverse=True)[:MAX_SWEEPS]:
        try:
            sweeps += [_read_sweep(context, files)]
        except GpucourseError as error:
            errors.append(error.what)
    return sweeps, errors


def _read_sweep(context: Context, files: RunPaths) -> SweepContent:
    sweep = read_sweep(context.paths, files)
    try:
        _, exercise = context.catalog.exercise(sweep.exercise)
    except GpucourseError:
        return SweepContent(sweep=sweep, exercise=None, chart=None)
    return SweepContent(sweep=sweep, exercise=exercise, chart=next(_list_charts(context.paths, exercise, sweep), None))


def _list_charts(paths: WorkspacePaths, exercise: Exercise, sweep: Sweep) -> Iterator[tuple[Plot, Drawable]]:
    """Yield the plots that are possible for a sweep. `run --sweep` draws the first."""
    metrics_by_value = {
        point.value: read_metrics(paths.run(sweep.folder, point.run).metrics)
        for point in sweep.points
        if point.run and point.state == "succeeded" and isinstance(point.value, str | int | float)
    }
    for plot in exercise.plots:
        rows = [
            (value, grids.rows_of(plot.rows, metrics))
            for value, metrics in metrics_by_value.items()
            if isinstance(metrics, dict)
        ]
        if sum(bool(value_rows) for _, value_rows in rows) < 2:
            continue
        sweep_plot, combined = make_sweep_plot(plot, sweep.parameter, sweep.unit, rows)
        try:
            yield sweep_plot, drawable(sweep_plot, combined)
        except MissingError:  # none of the runs has a number
            continue
