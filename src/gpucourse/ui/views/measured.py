"""Tables of the metrics of a run, as a manifest defines them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpucourse.outside.names import printable
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Column, Content, Paragraph, number_column, table, text_column

if TYPE_CHECKING:
    from gpucourse.model.manifest import MetricsColumn, MetricsTable
    from gpucourse.model.report import Grid

MAX_ROWS = 200  # rows of a table; more are counted
_MAX_CELL = 200
_SPREAD = re.compile(r"(^|_)p[28]0(_|$)")  # 20th and 80th percentile: a narrow terminal drops these columns first


def measured_table(definition: MetricsTable, metrics: Mapping[str, Any]) -> list[Block]:
    """Return one table of a manifest, filled from the metrics of a run, without the columns for which nothing was measured."""
    from gpucourse.grading.values import Unreadable, read

    try:
        rows = read(definition.rows, {"metrics": metrics})
    except Unreadable as error:
        return [Paragraph(f"{definition.title}: not measured ({error})", "dim")]
    if not isinstance(rows, list) or not rows:
        return [Paragraph(f"{definition.title}: not measured", "dim")]
    mappings = [row if isinstance(row, Mapping) else {} for row in rows[:MAX_ROWS]]
    measured_columns = [column for column in definition.columns if any(row.get(column.key) is not None for row in mappings)]
    numbers = any(isinstance(row.get(column.key), (int, float)) for column in measured_columns for row in mappings)
    if not numbers and len(measured_columns) < len(definition.columns):  # a table of nothing but names is not worth showing
        return [Paragraph(f"{definition.title}: not measured", "dim")]
    columns = [_make_column(column, mappings) for column in measured_columns]
    cells = [[_value(row, column) for column in measured_columns] for row in mappings]
    remainder = f"and {len(rows) - MAX_ROWS:,} more rows in metrics.json" if len(rows) > MAX_ROWS else ""
    keep = [index for index, row in enumerate(mappings) if str(row.get(definition.columns[0].key)) in definition.keep]
    return [table(columns, cells, title=definition.title)._replace(total=len(rows), keep=keep), Paragraph(remainder, "dim")]


def grid_blocks(grid: Grid) -> list[Block]:
    """Return a table of a report or of a comparison with its note, or only the note if the table has no rows."""
    if not grid.rows:
        return [Paragraph(f"{grid.title}: {grid.note}", "dim")]
    columns = [
        number_column(title) if numeric else text_column(title)
        for title, numeric in zip(grid.columns, grid.numeric, strict=True)
    ]
    return [table(columns, grid.rows, title=grid.title), Paragraph(grid.note, "dim")]


def _make_column(column: MetricsColumn, rows: Sequence[Mapping[str, Any]]) -> Column:
    words = any(isinstance(row.get(column.key), str) for row in rows)
    spare = column.spare or _SPREAD.search(column.key) is not None
    return Column(column.title, align="left" if words else "right", wrap=words, spare=spare)


def _value(row: Mapping[str, Any], column: MetricsColumn) -> Content:
    value = row.get(column.key)
    if value is None:
        return Cell(UNICODE.absent, "dim")  # not measured
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).lower() if isinstance(value, bool) else printable(str(value), _MAX_CELL)
    if not _is_finite(value):
        return Cell("infinite" if isinstance(value, int) else str(value), "bad")
    if column.digits is not None:
        text = f"{value:,.{column.digits}f}"
        return f"{value:.2g}" if value and not float(text.replace(",", "")) else text  # so that a small value is not shown as 0
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number too large for a float
        return False
