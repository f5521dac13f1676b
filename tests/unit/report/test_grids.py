"""Tables of a report: how a cell shows a value, and the rows of all subjects in one table."""

from __future__ import annotations

from typing import Any

from gpucourse.model.manifest import MetricsTable
from gpucourse.model.report_plan import Figure
from gpucourse.report.grids import comparison, merge_into_grid, number


def test_number_as_a_cell() -> None:
    assert [number(value, None) for value in (True, 1234, 0.123456, 10**400)] == ["yes", "1,234", "0.1235", "infinite"]


def test_merge_into_grid_names_the_subject_only_if_there_are_several() -> None:
    table = MetricsTable.model_validate({"title": "Times", "rows": "metrics.rows", "columns": [{"key": "ms", "title": "ms"}]})
    metrics: dict[str, Any] = {"here": {"rows": [{"ms": 1}]}, "T4": {"rows": [{"ms": None}]}}
    grids = [merge_into_grid(table, subset) for subset in (metrics, {"here": metrics["here"]})]
    assert [grid and grid.columns for grid in grids] == [("measured on", "ms"), ("ms",)]
    assert [grid and grid.rows for grid in grids] == [(("here", "1"), ("T4", "–")), (("1",),)]


def test_comparison_has_a_row_for_each_subject_and_says_what_was_not_measured() -> None:
    figures = [
        Figure(id="speed", value="metrics.speed", title="speed", digits=1),
        Figure(id="name", value="metrics.name", title="name"),
    ]
    grid = comparison("All", figures, {"T4": {"speed": 41.25, "name": "a"}, "L4": {"name": "b"}})
    assert grid is not None
    assert grid.rows == (("T4", "41.2", "a"), ("L4", "–", "b"))
    assert (grid.columns, grid.numeric, grid.note) == (("measured on", "speed", "name"), (False, True, False), "– not measured")
    whole = comparison("All", figures, {"T4": {"speed": 1.0, "name": "a"}})
    assert whole is not None
    assert whole.note == ""
