"""One plot for several runs: a line or bar for each run, or the results of all runs over the values of a swept parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpucourse.figures.rows import find_rows
from gpucourse.model.manifest import Plot, Series

RUN = "run"
MAX_LINES = 6  # the maximum number of lines that colours can distinguish
WIDE = 16.0  # the axis is logarithmic if the largest value is at least this many times the smallest


def side_by_side(plot: Plot, runs: Mapping[str, Mapping[str, Any]]) -> tuple[Plot, dict[str, Any]]:
    """Return the plot for several runs, and the metrics to draw it from. `runs` maps each run's label to its metrics."""
    rows = {label: find_rows(plot, metrics) for label, metrics in runs.items()}
    return _bars(plot, rows) if plot.kind == "bar" else _lines(plot, rows)


def _lines(plot: Plot, rows: Mapping[str, list[Mapping[str, Any]]]) -> tuple[Plot, dict[str, Any]]:
    joint_rows = [
        {**row, RUN: f"{row.get(plot.by)}, {label}" if plot.by else label}
        for label, run_rows in rows.items()
        for row in run_rows
    ]
    update = {"rows": "metrics.rows", "by": RUN, "ideal": False, "ideal_key": None}
    return plot.model_copy(update=update), {"rows": joint_rows}


def _bars(plot: Plot, rows: Mapping[str, list[Mapping[str, Any]]]) -> tuple[Plot, dict[str, Any]]:
    places: dict[Any, dict[str, Any]] = {}
    for number, run_rows in enumerate(rows.values()):
        for row in run_rows:
            place = places.setdefault(row.get(plot.x), {plot.x: row.get(plot.x)})
            place |= {f"{series.key}_of_{number}": row.get(series.key) for series in plot.series}
    is_single_series = len(plot.series) == 1
    series = tuple(
        drawn_series.model_copy(
            update={
                "key": f"{drawn_series.key}_of_{number}",
                "label": label if is_single_series else f"{drawn_series.label}, {label}",
                "low": None,
                "high": None,
                "reason": None,
            }
        )
        for drawn_series in plot.series
        for number, label in enumerate(rows)
    )
    return plot.model_copy(update={"rows": "metrics.rows", "series": series, "ideal_key": None}), {
        "rows": list(places.values())
    }


def make_sweep_plot(
    plot: Plot, parameter: str, unit: str, rows: Sequence[tuple[object, Sequence[Mapping[str, Any]]]]
) -> tuple[Plot, dict[str, Any]]:
    """Return the plot of a sweep, and the metrics to draw it from. `rows` has each value of the parameter, with the rows of its
    run.

    If the runs have few rows, each row (such as a size) becomes a line of the plot. Otherwise, only the last row of each run is
    drawn.
    """
    labels = list(dict.fromkeys(str(row.get(plot.x)) for _, run_rows in rows for row in run_rows))
    fits_one_plot = 1 < len(labels) * len(plot.series) <= MAX_LINES
    chosen_series = plot.series if fits_one_plot or len(plot.series) <= MAX_LINES else plot.series[:MAX_LINES]
    series: dict[str, Series] = {}
    joint_rows: list[dict[str, Any]] = []
    for value, run_rows in rows:
        point: dict[str, Any] = {parameter: value}
        for row in run_rows if fits_one_plot else run_rows[-1:]:
            number = labels.index(str(row.get(plot.x))) if fits_one_plot else 0
            for drawn_series in chosen_series:
                key, name = f"{drawn_series.key}_{number}", str(row.get(plot.x))
                label = (
                    drawn_series.label
                    if not fits_one_plot
                    else name
                    if len(chosen_series) == 1
                    else f"{name}, {drawn_series.label}"
                )
                low, high = (f"{end}_{number}" if end else None for end in (drawn_series.low, drawn_series.high))
                series.setdefault(key, Series(key=key, label=label, low=low, high=high))
                point |= {
                    f"{end}_{number}": row.get(end) for end in (drawn_series.key, drawn_series.low, drawn_series.high) if end
                }
        joint_rows.append(point)
    values = [value for value, _ in rows]
    numbers = [float(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    line = len(numbers) == len(values) > 1
    positive = line and min(numbers) > 0
    axis_title = f"{parameter} ({unit})" if unit else parameter
    return (
        Plot(
            file="sweep",
            title=f"{plot.title}, by {parameter}",
            kind="line" if line else "bar",
            rows="metrics.points",
            x=parameter,
            series=tuple(series.values()) or plot.series[:1],
            x_title=axis_title,
            y_title=plot.y_title,
            log_x=positive and max(numbers) / min(numbers) >= WIDE,
            log_y=plot.log_y,
            y_scale=plot.y_scale,
        ),
        {"points": joint_rows if line else [point | {parameter: str(point[parameter])} for point in joint_rows]},
    )
