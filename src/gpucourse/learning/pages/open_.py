"""`open`: the content of a workspace's page, from the functions behind `list`, `next`, `runs` and `show`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.figures.rows import Drawable, drawable
from gpucourse.learning.list_ import Syllabus, list_course
from gpucourse.learning.next_ import NextStep, find_next_step
from gpucourse.model.deployment import Receipt
from gpucourse.model.event import Note
from gpucourse.model.manifest import Exercise, Plot
from gpucourse.model.record import RunRecord
from gpucourse.model.sweep import Sweep
from gpucourse.runs.parameter_sweep import list_plots, read_sweep
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.files import read_metrics
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

MAX_SWEEPS = 40
"""The maximum number of sweeps on the page; the newest are shown."""


@dataclass(frozen=True, kw_only=True)
class SweepContent:
    """A sweep, its exercise (None if the course no longer has it), and a chart over its values, if any."""

    sweep: Sweep
    exercise: Exercise | None
    chart: tuple[Plot, Drawable] | None


@dataclass(frozen=True, kw_only=True)
class PageContent:
    """The content of all pages: the syllabus, every run, sweep and receipt, and a sentence for each unreadable item.

    The next step is None if it is not known. Runs and receipts are oldest first; sweeps are newest first.
    """

    syllabus: Syllabus
    next_step: NextStep | None
    records: Sequence[RunRecord]
    damaged: Sequence[str]
    sweeps: Sequence[SweepContent]
    damaged_sweeps: Sequence[str]
    receipts: Sequence[Receipt]
    damaged_receipts: Sequence[str]

    def list_runs(self, exercise: str) -> list[RunRecord]:
        """Return the runs of one exercise, oldest first. The learner's own scripts belong to no exercise."""
        return [record for record in self.records if record.exercise == exercise and not record.own_script]


def open_(context: Context) -> PageContent:
    """Return the content of the workspace's page, without contacting a node or changing anything."""
    records, errors = runs.readable(context.paths)
    try:
        step = find_next_step(context)
    except GpucourseError as error:
        context.watch(Note(text=f"the next step is not known: {error.what}", level="warning"))
        step = None
    sweeps, damaged_sweeps = _list_sweeps(context)
    receipts, damaged_receipts = deployments.list_receipts(context.paths)
    return PageContent(
        syllabus=list_course(context),
        next_step=step,
        records=records,
        damaged=[error.what for error in errors.values()],
        sweeps=sweeps,
        damaged_sweeps=damaged_sweeps,
        receipts=receipts,
        damaged_receipts=[error.what for error in damaged_receipts],
    )


def _list_sweeps(context: Context) -> tuple[list[SweepContent], list[str]]:
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
        point.value: metrics
        for point in sweep.points
        if point.run and point.state == "succeeded" and isinstance(point.value, str | int | float)
        if isinstance(metrics := read_metrics(paths.run(sweep.folder, point.run).metrics), dict)
    }
    for plot, metrics in list_plots(exercise, sweep, metrics_by_value):
        try:
            yield plot, drawable(plot, metrics)
        except MissingError:  # none of the runs has a number
            continue
