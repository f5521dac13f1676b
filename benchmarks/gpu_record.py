"""What stays of a proof on a GPU: `recorded/<gpu>.json`, small enough to travel with the course.

    {"format": 1, "gpu": the name that the driver gives, "date": of the run (UTC), "gpus": how many,
     "versions": {"torch", "cuda", "driver", "transformers", "python"},
     "ceilings": {"bf16_tflops": the library's best, ...} where it was searched,
     "exercises": {"4.2": {"settings", "seconds", "checks": {id: verdict}, "metrics": what the plots of 4.2 need}}}

Only runs that ended well on the GPU are in it. Of the metrics it holds the rows and columns that a plot of the manifest draws.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpucourse.model.manifest import Exercise, Plot

FORMAT = 1
DIGITS = 6


def for_plots(exercise: Exercise, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Of the metrics what the plots of the exercise draw: their rows, each with the columns that any of them names."""
    wanted: dict[str, set[str]] = {}
    for plot in exercise.plots:
        wanted.setdefault(plot.rows.removeprefix("metrics."), set()).update(_columns(plot))
    return {
        rows: [{key: _short(row[key]) for key in sorted(columns) if key in row} for row in metrics.get(rows, [])]
        for rows, columns in wanted.items()
    }


def write(folder: Path, record: Mapping[str, Any]) -> Path:
    """Write the record under the GPU's name, and give back where it is."""
    name = re.sub(r"[^a-z0-9]+", "-", str(record["gpu"]).lower()).strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"format": FORMAT, **record}, indent=1) + "\n", encoding="utf-8")
    return path


def _columns(plot: Plot) -> Iterator[str]:
    yield from (name for name in (plot.x, plot.by, plot.ideal_key) if name)
    for series in plot.series:
        yield from (name for name in (series.key, series.low, series.high) if name)


def _short(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
