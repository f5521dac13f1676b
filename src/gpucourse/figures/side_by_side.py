"""One plot over several runs: a line for each of them, or a bar for each of them at every place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpucourse.model.manifest import Plot

RUN = "run"


def side_by_side(plot: Plot, runs: Mapping[str, Mapping[str, Any]]) -> tuple[Plot, dict[str, Any]]:
    """Return the plot for several runs, and the metrics to draw it from. `runs` holds the metrics of each by its label."""
    rows = {label: _rows(plot, metrics) for label, metrics in runs.items()}
    return _bars(plot, rows) if plot.kind == "bar" else _lines(plot, rows)


def _lines(plot: Plot, rows: Mapping[str, list[Mapping[str, Any]]]) -> tuple[Plot, dict[str, Any]]:
    together = [
        {**row, RUN: f"{row.get(plot.by)}, {label}" if plot.by else label}
        for label, run_rows in rows.items()
        for row in run_rows
    ]
    changed = {"rows": "metrics.rows", "by": RUN, "ideal": False, "ideal_key": None}
    return plot.model_copy(update=changed), {"rows": together}


def _bars(plot: Plot, rows: Mapping[str, list[Mapping[str, Any]]]) -> tuple[Plot, dict[str, Any]]:
    places: dict[Any, dict[str, Any]] = {}
    for number, run_rows in enumerate(rows.values()):
        for row in run_rows:
            place = places.setdefault(row.get(plot.x), {plot.x: row.get(plot.x)})
            place |= {f"{series.key}_of_{number}": row.get(series.key) for series in plot.series}
    alone = len(plot.series) == 1
    series = tuple(
        drawn_series.model_copy(
            update={
                "key": f"{drawn_series.key}_of_{number}",
                "label": label if alone else f"{drawn_series.label}, {label}",
                "low": None,
                "high": None,
            }
        )
        for drawn_series in plot.series
        for number, label in enumerate(rows)
    )
    return plot.model_copy(update={"rows": "metrics.rows", "series": series, "ideal_key": None}), {
        "rows": list(places.values())
    }


def _rows(plot: Plot, metrics: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    here: Any = {"metrics": metrics}
    for step in plot.rows.split("."):
        here = here.get(step) if isinstance(here, Mapping) else None
    return [row for row in here if isinstance(row, Mapping)] if isinstance(here, list) else []
