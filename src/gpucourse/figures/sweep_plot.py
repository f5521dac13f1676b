"""One plot over the values of a parameter: what an exercise plots for one run, plotted against the swept parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpucourse.model.manifest import Plot, Series

MOST = 6  # lines that differ by colour
WIDE = 16.0  # the axis is logarithmic if the largest value is at least so many times the smallest


def make_sweep_plot(
    plot: Plot, parameter: str, unit: str, rows: Sequence[tuple[object, Sequence[Mapping[str, Any]]]]
) -> tuple[Plot, dict[str, Any]]:
    """Return the plot and the metrics to draw it from. `rows` holds, for each value, the rows of that run.

    If the runs have few rows, each row (a case, a size) is a line of its own; otherwise the last row of each run represents
    it.
    """
    labels = list(dict.fromkeys(str(row.get(plot.x)) for _, run_rows in rows for row in run_rows))
    few = 1 < len(labels) * len(plot.series) <= MOST
    wanted = plot.series if few or len(plot.series) <= MOST else plot.series[:MOST]
    series: dict[str, Series] = {}
    together: list[dict[str, Any]] = []
    for value, run_rows in rows:
        point: dict[str, Any] = {parameter: value}
        for row in run_rows if few else run_rows[-1:]:
            number = labels.index(str(row.get(plot.x))) if few else 0
            for drawn_series in wanted:
                key, name = f"{drawn_series.key}_{number}", str(row.get(plot.x))
                label = drawn_series.label if not few else name if len(wanted) == 1 else f"{name}, {drawn_series.label}"
                low, high = (f"{end}_{number}" if end else None for end in (drawn_series.low, drawn_series.high))
                series.setdefault(key, Series(key=key, label=label, low=low, high=high))
                point |= {
                    f"{end}_{number}": row.get(end) for end in (drawn_series.key, drawn_series.low, drawn_series.high) if end
                }
        together.append(point)
    values = [value for value, _ in rows]
    numbers = [float(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    line = len(numbers) == len(values) > 1
    positive = line and min(numbers) > 0
    named = f"{parameter} ({unit})" if unit else parameter
    return (
        Plot(
            file="sweep",
            title=f"{plot.title}, by {parameter}",
            kind="line" if line else "bar",
            rows="metrics.points",
            x=parameter,
            series=tuple(series.values()) or plot.series[:1],
            x_title=named,
            y_title=plot.y_title,
            log_x=positive and max(numbers) / min(numbers) >= WIDE,
            log_y=plot.log_y,
        ),
        {"points": together if line else [point | {parameter: str(point[parameter])} for point in together]},
    )
