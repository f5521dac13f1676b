"""Tables of a report: the figures of all subjects side by side, and the combined tables of an exercise's runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpucourse.model.manifest import MetricsTable
from gpucourse.model.report import Grid
from gpucourse.model.report_plan import Figure
from gpucourse.outside.names import printable

MAX_ROWS, _MAX_CELL = 200, 200
NOTHING = "–"
"""The text of a cell if nothing was measured. The words `not measured` would be too wide for a narrow column."""


def comparison(title: str, figures: Sequence[Figure], subjects: Mapping[str, Mapping[str, object]]) -> Grid | None:
    """Return a table with one row per subject and one column per figure, or None if there is no figure. `subjects` maps each
    subject to its values by figure id."""
    rows = [(name, *(number(values.get(figure.id), figure.digits) for figure in figures)) for name, values in subjects.items()]
    numeric = [not any(isinstance(values.get(figure.id), str) for values in subjects.values()) for figure in figures]
    grid = make_grid(title, ["measured on", *(figure.title for figure in figures)], rows, [False, *numeric])
    return grid if len(grid.columns) > 1 else None


def merge_into_grid(table: MetricsTable, metrics: Mapping[str, Mapping[str, Any]]) -> Grid | None:
    """Return one table with the rows of all subjects, each with the name of its subject. Return None if no run has such
    rows."""
    named_rows = [(name, row) for name, subject_metrics in metrics.items() for row in rows_of(table.rows, subject_metrics)]
    if not named_rows:
        return None
    rows = [(name, *(number(row.get(column.key), column.digits) for column in table.columns)) for name, row in named_rows]
    numeric = [all(_is_number_or_absent(row.get(column.key)) for _, row in named_rows) for column in table.columns]
    titles = [column.title for column in table.columns]
    grid = make_grid(table.title, ["measured on", *titles], rows, [False, *numeric])
    if len(metrics) > 1:
        return grid
    return replace(
        grid,
        title=f"{table.title} ({next(iter(metrics))})",
        columns=grid.columns[1:],
        rows=tuple(row[1:] for row in grid.rows),
        numeric=grid.numeric[1:],
    )


def make_grid(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]], numeric: Sequence[bool]) -> Grid:
    """Return a table, with a note if something was not measured. Columns without any value are only named in the note."""
    places = [place for place in range(len(columns)) if any(row[place] != NOTHING for row in rows)]
    empty = [column for place, column in enumerate(columns) if place not in places]
    absent = any(row[place] == NOTHING for row in rows for place in places)
    notes = [f"{NOTHING} not measured"] if absent else []
    notes += [f"columns without a value are left out: {', '.join(dict.fromkeys(empty))}"] if empty else []
    return Grid(
        title=title,
        columns=tuple(columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in rows),
        numeric=tuple(numeric[place] for place in places),
        note="; ".join(notes),
    )


def rows_of(path: str, metrics: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows at a path such as `metrics.rows`: at most the first MAX_ROWS, or an empty list if the run has none."""
    value: Any = {"metrics": metrics}
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return [row for row in value[:MAX_ROWS] if isinstance(row, Mapping)] if isinstance(value, list) else []


def number(value: object, digits: int | None) -> str:
    """Return a value as the text of a cell. A number has `digits` decimals, and commas between thousands. None becomes a
    dash."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return " ".join(printable(str(value), _MAX_CELL).split())
    try:
        if not math.isfinite(value):
            return str(value)
    except OverflowError:  # a whole number too large for a float
        return "infinite"
    if digits is not None:
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _is_number_or_absent(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
