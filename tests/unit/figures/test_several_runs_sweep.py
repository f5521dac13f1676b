"""The plot that an exercise has for one run, drawn over the values of a parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpucourse.figures.plots import draw
from gpucourse.figures.several_runs import make_sweep_plot
from gpucourse.model.manifest import Plot


def plot(**fields: Any) -> Plot:
    about = {
        "file": "speed", "title": "Speed", "kind": "bar", "rows": "metrics.rows", "x": "case", "x_title": "c",
        "y_title": "s (x)",
    }  # fmt: skip
    series = ({"key": "speed", "label": "measured", "low": "p20", "high": "p80"},)
    return Plot.model_validate({**about, "series": series, **fields})


def rows(*speeds: float) -> list[dict[str, Any]]:
    return [
        {"case": f"case {number}", "speed": speed, "p20": speed - 1, "p80": speed + 1} for number, speed in enumerate(speeds)
    ]


def test_make_sweep_plot_of_few_rows_has_a_line_each(tmp_path: Path) -> None:
    sweep_plot, metrics = make_sweep_plot(plot(), "batch_size", "samples", [(16, rows(1, 2)), (32, rows(3, 4))])
    assert [series.label for series in sweep_plot.series] == ["case 0", "case 1"]
    assert metrics["points"][1]["speed_1"] == 4
    assert (sweep_plot.kind, sweep_plot.x, sweep_plot.x_title, sweep_plot.log_x) == (
        "line",
        "batch_size",
        "batch_size (samples)",
        False,
    )
    assert sweep_plot.series[0].low == "p20_0"
    assert [path.name for path in draw(sweep_plot, metrics, subtitle="x", folder=tmp_path)] == ["sweep.png", "sweep.svg"]


def test_make_sweep_plot_of_many_rows_draws_the_last_one() -> None:
    sweep_plot, metrics = make_sweep_plot(plot(), "n", "", [(1, rows(*range(20))), (100, rows(*range(30)))])
    assert [series.label for series in sweep_plot.series] == ["measured"]
    assert [point["speed_0"] for point in metrics["points"]] == [19, 29]
    assert sweep_plot.log_x


def test_make_sweep_plot_draws_words_as_bars() -> None:
    sweep_plot, metrics = make_sweep_plot(plot(), "hook", "", [("none", rows(1)), ("fp16", rows(2))])
    assert sweep_plot.kind == "bar"
    assert [point["hook"] for point in metrics["points"]] == ["none", "fp16"]


@pytest.mark.parametrize("values", [(True, False), (0, 5), (-2, 3)])
def test_make_sweep_plot_is_linear_for_values_without_a_logarithm(values: tuple[Any, Any]) -> None:
    sweep_plot, _ = make_sweep_plot(plot(), "n", "", [(value, rows(1)) for value in values])
    assert not sweep_plot.log_x


def test_make_sweep_plot_leaves_a_gap_for_a_run_without_rows() -> None:
    _, metrics = make_sweep_plot(plot(), "n", "", [(1, rows(1, 2)), (2, []), (3, rows(3, 4))])
    assert metrics["points"][1] == {"n": 2}
