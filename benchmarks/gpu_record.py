"""The record of the GPU benchmark: `exercises/recorded/<gpu>.json`, small enough to ship with the course.

    {"format": 2, "gpu": the name that the driver gives, "date": of the run (UTC), "gpus": their number,
     "versions": {"torch", "cuda", "driver", "transformers", "python"},
     "ceilings": {"bf16_tflops": the library's best, ...} if it was measured,
     "exercises": {"4.2": {"settings", "seconds", "checks": {id: verdict}, "plots": {file: {"axes", "keys", "rows"}}}}}

It contains only successful runs on the GPU, and only those rows and columns of their metrics that a plot draws.
`gpucourse.course.gpu_record` reads it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpucourse.course.gpu_record import FOLDER, FORMAT, MAX_ROWS, describe_axes, list_keys, name_file
from gpucourse.model.manifest import Exercise, Plot

__all__ = ["FOLDER", "for_plots", "write"]
DIGITS = 6


def for_plots(exercise: Exercise, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data that the plots of the exercise draw, by plot file: axes, keys, and at most MAX_ROWS rows at regular
    intervals. Each row has the columns that the plot names. Plots without rows are left out."""
    plots = ((plot, _rows(plot, metrics)) for plot in exercise.plots)
    return {plot.file: {"axes": describe_axes(plot), "keys": list_keys(plot), "rows": rows} for plot, rows in plots if rows}


def write(folder: Path, record: Mapping[str, Any]) -> Path:
    """Write the record under the GPU's name, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name_file(str(record["gpu"]))
    path.write_text(json.dumps({"format": FORMAT, **record}, indent=1) + "\n", encoding="utf-8")
    return path


def _rows(plot: Plot, metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = metrics.get(plot.rows.removeprefix("metrics.")) or []
    step = max(1, -(-len(rows) // MAX_ROWS))
    return [{key: _short(row[key]) for key in sorted(set(_columns(plot))) if key in row} for row in rows[::step]]


def _columns(plot: Plot) -> Iterator[str]:
    yield from (name for name in (plot.x, plot.by) if name)
    for series in plot.series:
        yield from (name for name in (series.key, series.low, series.high) if name)


def _short(value: object) -> object:
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
