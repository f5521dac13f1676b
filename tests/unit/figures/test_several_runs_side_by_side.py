"""Plots of several runs in one."""

from __future__ import annotations

from gpucourse.figures.several_runs import side_by_side
from gpucourse.model.manifest import Plot, Series


def plot(kind: str, *series: str, by: str | None = None) -> Plot:
    entries = tuple(Series(key=key, label=key.upper()) for key in series)
    titles = {"x_title": "x", "y_title": "y"}
    return Plot(file="p", title="P", kind=kind, rows="metrics.rows", x="x", by=by, series=entries, **titles)  # type: ignore[arg-type]


def test_side_by_side_of_lines_draws_one_for_each_run() -> None:
    runs = {"T4": {"rows": [{"x": 1, "a": 2}]}, "L4": {"rows": [{"x": 1, "a": 3}, {"x": 2, "a": 4}]}, "none": {}}
    joint_plot, metrics = side_by_side(plot("line", "a"), runs)
    assert joint_plot.by == "run"
    assert [(row["run"], row["a"]) for row in metrics["rows"]] == [("T4", 2), ("L4", 3), ("L4", 4)]


def test_side_by_side_of_lines_by_a_key_draws_one_for_each_kind_and_run() -> None:
    runs = {"T4": {"rows": [{"x": 1, "a": 2, "dtype": "half"}]}, "L4": {"rows": [{"x": 1, "a": 3, "dtype": "half"}]}}
    assert [row["run"] for row in side_by_side(plot("line", "a", by="dtype"), runs)[1]["rows"]] == ["half, T4", "half, L4"]


def test_side_by_side_of_bars_draws_one_for_each_run_at_every_place() -> None:
    runs = {"T4": {"rows": [{"x": "half", "a": 2, "b": 5}]}, "L4": {"rows": [{"x": "half", "a": 3}, {"x": "single", "a": 1}]}}
    joint_plot, metrics = side_by_side(plot("bar", "a"), runs)
    assert [series.label for series in joint_plot.series] == ["T4", "L4"]
    values = [[row.get(series.key) for series in joint_plot.series] for row in metrics["rows"]]
    assert values == [[2, 3], [None, 1]]
    assert [s.label for s in side_by_side(plot("bar", "a", "b"), runs)[0].series] == ["A, T4", "A, L4", "B, T4", "B, L4"]
