"""Tables of a report: the figures of all subjects side by side, and the tables of an exercise's runs put together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpucourse.model.manifest import MetricsTable
from gpucourse.model.report import Grid
from gpucourse.model.report_plan import Figure
from gpucourse.outside.names import printable

MAX_ROWS, _MAX_CELL = 200, 200
NOTHING = "–"
"""The text of a cell if nothing was measured; `not measured` would fill the column of a narrow table."""


def comparison(title: str, figures: Sequence[Figure], subjects: Mapping[str, Mapping[str, object]]) -> Grid:
    """Return a table with one row per subject and one column per figure. `subjects` holds each one's values by figure id."""
    rows = tuple(
        (name, *(number(values.get(figure.id), figure.digits) for figure in figures)) for name, values in subjects.items()
    )
    absent = any(cell == NOTHING for row in rows for cell in row)
    return Grid(
        title=title,
        columns=("measured on", *(figure.title for figure in figures)),
        rows=rows,
        numeric=(
            False,
            *(not any(isinstance(values.get(column.id), str) for values in subjects.values()) for column in figures),
        ),
        note=f"{NOTHING} not measured" if absent else "",
    )


def merge_into_grid(table: MetricsTable, metrics: Mapping[str, Mapping[str, Any]]) -> Grid | None:
    """Return the rows of one table of an exercise for all subjects, each with its subject; None if no run has such rows."""
    rows = [
        (name, *(number(row.get(column.key), column.digits) for column in table.columns))
        for name, subject_metrics in metrics.items()
        for row in rows_of(table.rows, subject_metrics)
    ]
    if not rows:
        return None
    values = [
        [row.get(column.key) for subject_metrics in metrics.values() for row in rows_of(table.rows, subject_metrics)]
        for column in table.columns
    ]
    numeric = (False, *(all(_numeric(value) for value in column if value is not None) for column in values))
    alone = len(metrics) == 1
    start = 1 if alone else 0
    columns = ("measured on", *(column.title for column in table.columns))
    absent = any(cell == NOTHING for row in rows for cell in row)
    return Grid(
        title=f"{table.title} ({next(iter(metrics))})" if alone else table.title,
        columns=columns[start:],
        rows=tuple(row[start:] for row in rows),
        numeric=numeric[start:],
        note=f"{NOTHING} not measured" if absent else "",
    )


def rows_of(path: str, metrics: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows at a path such as `metrics.rows`: empty if the run has none, the first MAX_ROWS if it has more."""
    value: Any = {"metrics": metrics}
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return [row for row in value[:MAX_ROWS] if isinstance(row, Mapping)] if isinstance(value, list) else []


def number(value: object, digits: int | None) -> str:
    """Return a value as the text of a cell: numbers with so many digits, a comma between thousands; None as a dash."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return " ".join(printable(str(value), _MAX_CELL).split())
    try:
        if not math.isfinite(value):
            return str(value)
    except OverflowError:  # a whole number beyond every float
        return "infinite"
    if digits is not None:
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _numeric(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
