"""The learner's calibration over the course: predictions compared with measurements, one point for each exercise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.figures.plots import draw
from gpucourse.learning.predictions import list_predictions
from gpucourse.model.event import Note, Watcher
from gpucourse.model.manifest import Plot, Series
from gpucourse.model.node import is_simulated
from gpucourse.model.report import Chapter, Grid, Picture

_TITLE = "What I predicted"
_PLOT = Plot(
    file="calibration",
    title="Predicted over measured, exercise by exercise",
    kind="line",
    rows="metrics.predictions",
    x="exercise",
    series=(Series(key="ratio", label="first prediction"),),
    x_title="exercise",
    y_title="predicted / measured (1 = as measured)",
    connect=False,
    log_y=True,
    ideal_key="exact",
    ideal_label="as measured",
)


DrawPicture = Callable[[Plot, Mapping[str, Any], str], Picture]
"""Draw a plot of metrics, with a subtitle. Raises MissingError if there is nothing to draw."""


def draw_files(folder: Path, plot: Plot, metrics: Mapping[str, Any], subtitle: str) -> Picture:
    """Draw a picture with matplotlib, keep its files in `folder`, and return it.

    Raises MissingError if there is nothing to draw.
    """
    png, svg = draw(plot, metrics, subtitle=subtitle, folder=folder)
    return Picture(title=plot.title, png=png.read_bytes(), svg=svg.read_bytes())


def draw_calibration(context: Context, draw: DrawPicture) -> tuple[Chapter, ...]:
    """Return a chapter that compares the first prediction of each exercise with its measurement, or nothing if there are no
    predictions.
    """
    pairs = [
        (exercise, predictions[0])
        for exercise in context.catalog.exercises
        if (predictions := list_predictions(context.paths, exercise))
    ]
    if not pairs:
        return ()
    rows: list[tuple[str, ...]] = [
        (exercise.id, item.result.text, item.result.prediction, item.result.measurement, item.result.difference)
        for exercise, item in pairs
    ]
    numeric = (False, False, *(all(map(_is_number, cells)) for cells in list(zip(*rows, strict=True))[2:]))
    if not numeric[-1]:  # a choice is right or not, so the words of a number have to say what they are
        rows = [(*cells, item.result.deviation) for (*cells, _), (_, item) in zip(rows, pairs, strict=True)]
    titles = ("exercise", "what", "predicted", "measured", "off by" if numeric[-1] else "result")
    points = [
        {"exercise": exercise.id, "ratio": item.result.ratio, "exact": 1.0} for exercise, item in pairs if item.result.ratio
    ]
    local = any(is_simulated(item.record.mode) for _, item in pairs)
    subtitle = "simulated nodes (mode: local)" if local else ""
    return (
        Chapter(
            id="calibration",
            title=_TITLE,
            text="The first prediction of each exercise, made before its run, next to what the run measured.",
            grids=(Grid(title="Predictions", columns=titles, rows=tuple(rows), numeric=numeric),),
            pictures=draw_or_warn(context.watch, _PLOT, {"predictions": points}, subtitle, draw) if points else (),
            sources=tuple(item.record.id for _, item in pairs),
        ),
    )


def _is_number(cell: str) -> bool:
    """Return whether the text of a cell is a number with a unit, or empty, and not a choice with its words."""
    return not cell or cell.lstrip("+-±")[:1].isdigit()


def draw_or_warn(
    watch: Watcher, plot: Plot, metrics: Mapping[str, Any], subtitle: str, draw: DrawPicture
) -> tuple[Picture, ...]:
    """Return the picture of a plot. If there is nothing to draw, warn and return no picture."""
    try:
        return (draw(plot, metrics, subtitle),)
    except MissingError as error:
        watch(Note(text=f"no chart {plot.file}: {error.what}", level="warning"))
        return ()
