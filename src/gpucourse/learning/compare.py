"""`compare`: shows runs of one exercise side by side, with values, differences and charts, and stores these in
`deliverables/`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.figures.plots import draw
from gpucourse.figures.several_runs import side_by_side
from gpucourse.learning.pages.run_content import read_run
from gpucourse.learning.pages.side_by_side import (
    MEASURED,
    NOISE,
    UNKNOWN,
    ComparedRow,
    list_cells,
    list_values,
    put_side_by_side,
)
from gpucourse.model.event import Note
from gpucourse.model.manifest import Exercise, MetricsTable
from gpucourse.model.node import SIMULATED, is_simulated
from gpucourse.model.record import RunRecord, name_subjects
from gpucourse.model.report import Grid
from gpucourse.report import grids
from gpucourse.report.markdown import table as as_markdown
from gpucourse.runs.resolve import find_run
from gpucourse.runs.results import material
from gpucourse.storage import write_text
from gpucourse.workspace import runs
from gpucourse.workspace.paths import WorkspacePaths

Rows = Mapping[str, Sequence[ComparedRow]]
"""The values of all runs, by the title of their table."""

_NO_VALUE = re.compile(r"p\d\d_|pid$")  # a column with the spread of another column, or with process ids


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparison of several runs.

    `labels`: a name for each run in tables and charts. The name shows how that run differs from the others.
    `conclusion`: a sentence or two on the differences.
    `repeat`: a command that shows how much of the differences is noise. It is empty if there is no such command.
    """

    exercise: str
    title: str
    mode: str
    labels: dict[str, str]
    records: tuple[RunRecord, ...]
    grids: tuple[Grid, ...]
    files: tuple[Path, ...]
    conclusion: str
    repeat: str


def compare(context: Context, run_names: Sequence[str]) -> Comparison:
    """Return the comparison of runs of one exercise, and store charts and tables in `deliverables/<exercise>/comparison*`.

    Runs of a learner's own script are compared by what the script wrote, and nothing is stored. If the only name is an
    exercise or a script, compare its two newest good runs.

    Raises UnknownName for an unknown run, UsageError for fewer than two runs or for runs of different exercises or scripts,
    and MissingError if a run has no metrics.
    """
    records = [find_run(context, name) for name in run_names]
    if len(records) == 1 and (run_names[0] == records[0].exercise or records[0].is_of_script(run_names[0])):
        records = runs.find_newest_two(context.paths, run_names[0])
        ids = " and ".join(record.id for record in records)
        context.watch(Note(text=f"the two newest good runs of {run_names[0]}: {ids}"))
    records = list({record.id: record for record in records}.values())
    if len(records) < 2:
        hint = "gpucourse compare RUN RUN, or gpucourse compare 3.2 for the two newest; gpucourse runs lists them"
        raise UsageError("a comparison needs two different runs", hint=hint)
    mode = SIMULATED if any(is_simulated(record.mode) for record in records) else records[0].mode
    if script_runs := [record for record in records if record.own_script]:
        if len({record.subject for record in records}) == 1:
            return _compare_scripts(context, records, mode)
        raise UsageError(
            f"run {script_runs[0].id} ran {script_runs[0].subject}, a script of your own, but another run did not",
            hint="compare runs of one exercise, or of one script: gpucourse runs lists them",
        )
    numbers = dict.fromkeys(record.exercise for record in records)
    if len(numbers) > 1:
        raise UsageError(
            f"these are runs of different exercises: {', '.join(numbers)}",
            hint="compare runs of one exercise: gpucourse runs lists them",
        )
    _module, exercise = context.catalog.exercise(records[0].exercise)
    metrics = {record.id: _metrics(context.paths, record) for record in records}
    labels = _labels(records, metrics)
    metrics_by_label = {labels[record.id]: metrics[record.id] for record in records}
    settings = {parameter.name for parameter in exercise.parameters}
    rows = {table.title: compared for table in exercise.tables if (compared := _list_rows(table, metrics_by_label, settings))}
    differing = {title: compared for title, compared in rows.items() if any(row.differs for row in compared)}
    tables = tuple(_lay_out(title, compared, list(metrics_by_label)) for title, compared in (differing or rows).items())
    conclusion = _conclude(records, rows)
    files = [*_draw(context, exercise, metrics_by_label, mode), _store(context.paths, exercise, tables, mode, conclusion)]
    return Comparison(
        exercise=exercise.id,
        title=exercise.title,
        mode=mode,
        labels=labels,
        records=tuple(records),
        grids=tables,
        files=tuple(files),
        conclusion=conclusion,
        repeat=_repeat(exercise, records[-1]) if _may_be_noise(rows) and _list_settings(records) else "",
    )


def _compare_scripts(context: Context, records: Sequence[RunRecord], mode: str) -> Comparison:
    """Return the comparison of runs of one of the learner's scripts: how they were started, what they measured, and their
    checks."""
    contents = [read_run(context, record) for record in records]
    labels = _labels(records, {content.record.id: content.metrics for content in contents})
    groups = put_side_by_side([list_values(content) for content in contents])
    script_count = len({record.own_script for record in records})
    return Comparison(
        exercise=records[0].subject,
        title="your own script" if script_count == 1 else f"{script_count} scripts of your own with the same name",
        mode=mode,
        labels=labels,
        records=tuple(records),
        grids=tuple(_lay_out(group, rows, list(labels.values())) for group, rows in groups.items()),
        files=(),
        conclusion=_conclude(records, {MEASURED: groups.get(MEASURED, [])}),
        repeat="",
    )


def _list_rows(
    table: MetricsTable, metrics_by_label: Mapping[str, Mapping[str, Any]], settings: Collection[str]
) -> list[ComparedRow]:
    """Return a row for each value of the table, with the values of all runs. `settings`: the exercise's parameters."""
    group = table.title
    visible_table = table.model_copy(
        update={"columns": [column for column in table.columns if not _NO_VALUE.match(column.key)]}
    )
    values = [
        {(group, name): value for name, value in list_cells(visible_table, metrics, settings)}
        for metrics in metrics_by_label.values()
    ]
    return put_side_by_side(values).get(group, [])


def _may_be_noise(rows: Rows) -> bool:
    return any(row.list_marks() & {NOISE, UNKNOWN} for compared in rows.values() for row in compared)


def _conclude(records: Sequence[RunRecord], rows: Rows) -> str:
    """Return sentences on the settings that differ, and on how many measured differences exceed the spreads, may be noise, or
    have an unknown spread."""
    settings = _list_settings(records)
    first = f"Different settings: {', '.join(settings)}." if settings else "The settings are the same in all runs."
    marks = [marks for compared in rows.values() for row in compared if (marks := row.list_marks())]
    if not marks:
        others_differ = any(row.differs for compared in rows.values() for row in compared)
        end = (
            "Otherwise, only counts, texts, or values that one run lacks differ."
            if others_differ
            else "They measured the same values."
        )
        return f"{first} {end}"
    unknown = sum(UNKNOWN in row_marks for row_marks in marks)
    noise = sum(NOISE in row_marks and UNKNOWN not in row_marks for row_marks in marks)
    larger = len(marks) - unknown - noise
    counts = {"larger than the runs' own spreads": larger, "that may be noise": noise, "of unknown spread": unknown}
    summary = ", ".join(f"{count} {words}" for words, count in counts.items() if count)
    reason = "" if settings else " They come from noise, from other load on the machine, or from code that you changed."
    return f"{first} {len(marks)} measured difference{'s' if len(marks) > 1 else ''}: {summary}.{reason}"


def _list_settings(records: Sequence[RunRecord]) -> list[str]:
    """Return the names of the settings in which the runs differ, such as `batch_size`."""
    return _list_differing(
        [
            {"mode": record.mode, "nodes": record.node_count, "ranks": record.rank_count} | record.parameters
            for record in records
        ]
    )


def _list_differing(facts: Collection[Mapping[str, object]]) -> list[str]:
    """Return the names of the facts in which the runs differ."""
    names = dict.fromkeys(name for run_facts in facts for name in run_facts)
    return [name for name in names if len({str(run_facts.get(name)) for run_facts in facts}) > 1]


def _repeat(exercise: Exercise, record: RunRecord) -> str:
    """Return the command that repeats the exercise with the settings of a run."""
    local = is_simulated(record.mode)
    setting_options = [
        f"--set {quote(f'{parameter.name}={record.parameters[parameter.name]}')}"
        for parameter in exercise.parameters
        if record.parameters.get(parameter.name, (usual := parameter.default_for(local=local))) != usual
    ]
    nodes = [f"--nodes {len(record.nodes)}"] if len(record.nodes) != exercise.launch.nodes else []
    return " ".join([f"gpucourse run {exercise.id}", *nodes, *setting_options])


def _lay_out(group: str, rows: Sequence[ComparedRow], names: Sequence[str]) -> Grid:
    """Return a table of the rows that differ, with a column for each run. Its note says how many rows are equal."""
    cells = [(row.title, *_tell_values(row)) for row in rows if row.differs]
    same, marks = len(rows) - len(cells), set[str]().union(*(row.list_marks() for row in rows))
    notes = [
        f"{same} {'value is' if same == 1 else 'values are'} the same in all runs" if same else "",
        f"{NOISE.strip()} may be noise: the runs' own spreads (p20 to p80) overlap" if NOISE in marks else "",
        f"{UNKNOWN.strip()} the spread was not measured" if UNKNOWN in marks else "",
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
    """Return the values of a row, each with its difference from the first. For two runs, the difference has a separate cell."""
    first, *following = (value.text if value else grids.NOTHING for value in row.values)
    differences = row.list_differences()[1:]
    if len(following) == 1:
        return first, following[0], differences[0]
    return first, *(f"{text} ({far})" if far else text for text, far in zip(following, differences, strict=True))


def _metrics(paths: WorkspacePaths, record: RunRecord) -> Mapping[str, Any]:
    metrics = material(paths, record)["metrics"]
    if not metrics:
        raise MissingError(
            f"run {record.id} has no metrics ({record.state}), so there is nothing to compare",
            hint=f"run it again: gpucourse run {record.exercise}",
        )
    return metrics


def _labels(records: Sequence[RunRecord], metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return a label for each run: the device, number of ranks or parameters that differ, or the end of its id."""
    scripts = name_subjects(records)
    facts = {
        record.id: {
            "script": scripts[record.id],
            "": str(metrics[record.id].get("device") or "device unknown"),
            "ranks": record.rank_count,
            **record.parameters,
        }
        for record in records
    }
    differing = _list_differing(facts.values())
    labels = {
        run: ", ".join(f"{name} {run_facts.get(name)}".strip() for name in differing[:3]) or run.rsplit("-", 1)[-1]
        for run, run_facts in facts.items()
    }
    if len(set(labels.values())) < len(labels):
        labels = {run: f"{label} ({run.rsplit('-', 1)[-1]})" for run, label in labels.items()}
    return labels


def _draw(context: Context, exercise: Exercise, metrics_by_label: Mapping[str, Mapping[str, Any]], mode: str) -> Iterator[Path]:
    folder = context.paths.deliverables(exercise.id)
    subtitle = " · ".join([exercise.id, " / ".join(metrics_by_label), *([f"mode: {mode}"] if mode == SIMULATED else [])])
    for manifest_plot in exercise.plots:
        plot, combined = side_by_side(manifest_plot, metrics_by_label)
        plot = plot.model_copy(update={"file": f"comparison-{manifest_plot.file}"})
        try:
            yield from draw(plot, combined, subtitle=subtitle, folder=folder)
        except MissingError as error:
            context.watch(Note(text=f"no chart {manifest_plot.file}: {error.what}", level="warning"))


def _store(paths: WorkspacePaths, exercise: Exercise, tables: Sequence[Grid], mode: str, conclusion: str) -> Path:
    path = paths.comparison(exercise.id)
    parts = [f"# {exercise.id} {exercise.title}, compared", *([f"mode: {mode}"] if mode else [])]
    for grid in tables:
        parts += [f"## {grid.title}", *([as_markdown(grid)] if grid.rows else []), *([grid.note] if grid.note else [])]
    write_text(path, "\n\n".join([*parts, conclusion]) + "\n")
    return path
