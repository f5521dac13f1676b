"""`compare`: runs of one exercise side by side, with values, differences and charts, kept with what is handed in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.learning.pages.run_content import read_run
from gpucourse.learning.pages.side_by_side import NOISE, ComparedRow, list_cells, list_values, put_side_by_side
from gpucourse.model.event import Note
from gpucourse.model.manifest import Exercise, MetricsTable
from gpucourse.model.node import SIMULATED, is_simulated
from gpucourse.model.record import RunRecord, name_subjects
from gpucourse.model.report import Grid
from gpucourse.report import grids
from gpucourse.report.markdown import table as as_markdown
from gpucourse.runs.results import material
from gpucourse.workspace import runs

_PERCENTILE = re.compile(r"p\d\d_")  # a column that tells how far another one spread, and not a value of its own


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Runs side by side. `labels` names each in the tables and charts: by what tells it from the others."""

    exercise: str
    title: str
    mode: str
    labels: dict[str, str]
    records: tuple[RunRecord, ...]
    grids: tuple[Grid, ...]
    files: tuple[Path, ...]


def compare(context: Context, wanted: Sequence[str]) -> Comparison:
    """Put runs of one exercise side by side; charts and tables go to `deliverables/<exercise>/comparison*`. Runs of one script
    of the learner's own stand side by side with what that wrote; nothing is kept of it.

    Raises UnknownName, UsageError (fewer than two, of different exercises or scripts), MissingError (a run without metrics).
    """
    records = [runs.find(context.paths, name) for name in wanted]
    records = list({record.id: record for record in records}.values())
    if len(records) < 2:
        hint = "gpucourse compare RUN RUN; gpucourse runs lists them"
        raise UsageError("a comparison needs two different runs", hint=hint)
    if own := [record for record in records if record.own_script]:
        if len({record.subject for record in records}) == 1:
            return _compare_scripts(context, records)
        raise UsageError(
            f"run {own[0].id} ran {own[0].subject}, a script of your own, and another did not",
            hint="compare runs of one exercise, or of one script: gpucourse runs lists them",
        )
    numbers = dict.fromkeys(record.exercise for record in records)
    if len(numbers) > 1:
        raise UsageError(
            f"these are runs of different exercises: {', '.join(numbers)}",
            hint="compare runs of one exercise: gpucourse runs lists them",
        )
    _module, exercise = context.catalog.exercise(records[0].exercise)
    metrics = {record.id: _metrics(context, record) for record in records}
    labels = _labels(records, metrics)
    named = {labels[record.id]: metrics[record.id] for record in records}
    tables = tuple(grid for table in exercise.tables if (grid := _make_grid(table, named)))
    mode = SIMULATED if any(is_simulated(record.mode) for record in records) else records[0].mode
    files = [*_draw(context, exercise, named, mode), _store(context, exercise, tables, mode)]
    return Comparison(
        exercise=exercise.id,
        title=exercise.title,
        mode=mode,
        labels=labels,
        records=tuple(records),
        grids=tables,
        files=tuple(files),
    )


def _compare_scripts(context: Context, records: Sequence[RunRecord]) -> Comparison:
    """Runs of one script of the learner's own, by how they were started, what they measured and their checks."""
    contents = [read_run(context, record) for record in records]
    labels = _labels(records, {content.record.id: content.metrics for content in contents})
    groups = put_side_by_side([list_values(content) for content in contents])
    grids_of_groups = (_lay_out(group, rows, list(labels.values())) for group, rows in groups.items())
    mode = SIMULATED if any(is_simulated(record.mode) for record in records) else records[0].mode
    many = len({record.own_script for record in records})
    return Comparison(
        exercise=records[0].subject,
        title="your own script" if many == 1 else f"{many} scripts of your own with one name",
        mode=mode,
        labels=labels,
        records=tuple(records),
        grids=tuple(grids_of_groups),
        files=(),
    )


def _make_grid(table: MetricsTable, named: Mapping[str, Mapping[str, Any]]) -> Grid | None:
    """A row for each value of the table, a column for each run, and how far each is from the first; None without a value."""
    group = table.title
    shown = table.model_copy(update={"columns": [column for column in table.columns if not _PERCENTILE.match(column.key)]})
    values = [{(group, name): value for name, value in list_cells(shown, metrics)} for metrics in named.values()]
    rows = put_side_by_side(values).get(group, [])
    return _lay_out(group, rows, list(named)) if rows else None


def _lay_out(group: str, rows: Sequence[ComparedRow], names: Sequence[str]) -> Grid:
    """The rows that differ, with a column for each run, and how many are the same."""
    cells = [(row.title, *_tell_values(row)) for row in rows if row.differs]
    same = len(rows) - len(cells)
    notes = [
        f"{same} {'value is' if same == 1 else 'values are'} the same in all runs" if same else "",
        f"{NOISE.strip()} may be noise: the runs' own spreads (p20 to p80) overlap" if NOISE in str(cells) else "",
    ]
    columns = ("value", *names, *([] if len(names) > 2 else ["difference"]))
    return Grid(
        title=group,
        columns=columns,
        rows=tuple(cells),
        numeric=(False, *[True] * (len(columns) - 1)),
        note="; ".join(filter(None, notes)),
    )


def _tell_values(row: ComparedRow) -> tuple[str, ...]:
    """The values of a row, and how far each is from the first: of two runs in a cell of its own."""
    first, *others = (value.text if value else grids.NOTHING for value in row.values)
    differences = row.list_differences()[1:]
    if len(others) == 1:
        return first, others[0], differences[0]
    return first, *(f"{text} ({far})" if far else text for text, far in zip(others, differences, strict=True))


def _metrics(context: Context, record: RunRecord) -> Mapping[str, Any]:
    metrics = material(context, record)["metrics"]
    if not metrics:
        raise MissingError(
            f"run {record.id} has no metrics ({record.state}), so there is nothing to compare",
            hint=f"run it again: gpucourse run {record.exercise}",
        )
    return metrics


def _labels(records: Sequence[RunRecord], metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Each run by what tells it apart: its device, its number of ranks, parameters that differ; else by its own word."""
    scripts = name_subjects(records)
    facts = {
        record.id: {
            "script": scripts[record.id],
            "": str(metrics[record.id].get("device") or "device unknown"),
            "ranks": record.world_size,
            **record.parameters,
        }
        for record in records
    }
    names = dict.fromkeys(name for run_facts in facts.values() for name in run_facts)
    telling = [name for name in names if len({str(run_facts.get(name)) for run_facts in facts.values()}) > 1]
    labels = {
        run: ", ".join(f"{name} {run_facts.get(name)}".strip() for name in telling[:3]) or run.rsplit("-", 1)[-1]
        for run, run_facts in facts.items()
    }
    if len(set(labels.values())) < len(labels):
        labels = {run: f"{label} ({run.rsplit('-', 1)[-1]})" for run, label in labels.items()}
    return labels


def _draw(context: Context, exercise: Exercise, named: Mapping[str, Mapping[str, Any]], mode: str) -> Iterator[Path]:
    from gpucourse.figures.plots import draw
    from gpucourse.figures.side_by_side import side_by_side

    folder = context.paths.deliverables(exercise.id)
    subtitle = " · ".join([exercise.id, " / ".join(named), *([f"mode: {mode}"] if mode == SIMULATED else [])])
    for manifest_plot in exercise.plots:
        plot, combined = side_by_side(manifest_plot, named)
        plot = plot.model_copy(update={"file": f"comparison-{manifest_plot.file}"})
        try:
            yield from draw(plot, combined, subtitle=subtitle, folder=folder)
        except MissingError as error:
            context.watch(Note(text=f"no chart {manifest_plot.file}: {error.what}", level="warning"))


def _store(context: Context, exercise: Exercise, tables: Sequence[Grid], mode: str) -> Path:
    from gpucourse.storage import write_text

    path = context.paths.comparison(exercise.id)
    parts = [f"# {exercise.id} {exercise.title}, compared", *([f"mode: {mode}"] if mode else [])]
    for grid in tables:
        parts += [f"## {grid.title}", *([as_markdown(grid)] if grid.rows else []), *([grid.note] if grid.note else [])]
    write_text(path, "\n\n".join(parts) + "\n")
    return path
