"""Runs side by side on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucourse.ui.tables import Column, Facts, Part, View, facts, table

if TYPE_CHECKING:
    from gpucourse.learning.compare import Comparison


def compare(result: Comparison) -> View:
    """What is compared, its tables, and where the charts are."""
    parts: list[Part] = [
        facts([(record.id, f"{result.labels[record.id]} ({record.mode}, {record.state})") for record in result.records])
    ]
    for grid in result.grids:
        columns: list[Column | str] = [
            Column(title, align="right" if numeric else "left", wrap=not numeric)
            for title, numeric in zip(grid.columns, grid.numeric, strict=True)
        ]
        parts.append(table(columns, list(grid.rows), title=grid.title))
    parts.append(Facts(tuple(("file", str(path)) for path in result.files), title="Kept"))
    return View(title=f"{result.exercise}  {result.title}, compared", parts=tuple(parts), mode=result.mode)
