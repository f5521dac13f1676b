"""Draw points that the course's authors measured on a GPU. They accompany the points of a run without a GPU, and a label says
that they are not the learner's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpucourse.errors import MissingError
from gpucourse.figures.rows import Drawable, PlotPoint, drawable, printable
from gpucourse.figures.style import GREY, INK, MAX_MARKS, PALETTE
from gpucourse.model.manifest import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES = (0, (2, 1.5))
MIN_SHARE = 0.01
"""A linear axis shows both a record and a run only if the run's largest value is at least this share of the record's."""
HOLLOW: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 10, "markerfacecolor": "none"}


@dataclass(frozen=True, kw_only=True)
class RecordedPlot:
    """The record for one plot: the GPU, when and with which versions it was measured, and the rows."""

    gpu: str
    caption: str
    rows: Sequence[Mapping[str, Any]]


def add_record(plot: Plot, data: Drawable, record: RecordedPlot) -> Drawable:
    """Add the record's points to `data`. Return `data` unchanged if no points of the record fit its axes, or if all of them
    are also points of the run.

    If the x axis has words, only points at the run's words are added.
    """
    try:
        recorded_rows = _read_rows(plot, record)
    except MissingError:  # the record has no number for this plot
        return data
    if bool(recorded_rows.words) != bool(data.words):
        return data
    series = (
        [_move_to_words(points, recorded_rows.words, data.words) for points in recorded_rows.series]
        if data.words
        else recorded_rows.series
    )
    run_points = dict(zip(data.labels, data.series, strict=True))
    series = [  # points that the run has as well come from data sheets or publications, not from this GPU
        [point for point in points if point not in run_points.get(label, ())]
        for label, points in zip(recorded_rows.labels, series, strict=True)
    ]
    if not any(series):
        return data
    if not plot.log_y and max(data.all_y()) < MIN_SHARE * max(point.y for points in series for point in points):
        note = f"not drawn: what was recorded on {printable(record.gpu)}, more than {1 / MIN_SHARE:.0f} times as large"
        return replace(data, notes=[*data.notes, note])
    data = replace(data, whole_x=data.whole_x and recorded_rows.whole_x)
    return _add_lines(data, record, recorded_rows.labels, series)


def record_alone(plot: Plot, record: RecordedPlot) -> Drawable:
    """Return only the record's points, for a run that measured nothing because it had no GPU. Raises MissingError if the record
    has no number for this plot."""
    rows = _read_rows(plot, record)
    empty = replace(rows, series=[[] for _ in rows.series], ideal=[], notes=["not measured in this run: it had no GPU"])
    return _add_lines(empty, record, rows.labels, rows.series)


def _add_lines(data: Drawable, record: RecordedPlot, labels: Sequence[str], series: Sequence[Sequence[PlotPoint]]) -> Drawable:
    return replace(
        data,
        recorded={label: list(points) for label, points in zip(labels, series, strict=True) if points},
        recorded_label=f"recorded on {printable(record.gpu)}, not yours",
        caption=printable(record.caption),
    )


def _read_rows(plot: Plot, record: RecordedPlot) -> Drawable:
    metrics: Any = list(record.rows)
    for step in reversed(plot.rows.split(".")[1:]):
        metrics = {step: metrics}
    return drawable(plot, metrics)


def draw_recorded_lines(axes: Axes, plot: Plot, data: Drawable) -> None:
    """Draw dashed lines with hollow marks, each in the colour of the run's line of the same name."""
    for label, points in data.recorded.items():
        axes.plot(
            [point.x for point in points],
            [point.y for point in points],
            color=choose_colour(label, data),
            linestyle=DASHES,
            linewidth=1.5 if plot.connect else 0,
            marker="o" if len(points) <= MAX_MARKS or not plot.connect else None,
            markersize=4.5,
            markerfacecolor="none",
            label=None if label in data.labels else label,
            zorder=2.5,
        )
    if data.recorded:  # one legend entry for all of them
        axes.plot([], [], color=GREY, linestyle=DASHES, marker="o", markerfacecolor="none", label=data.recorded_label)


def draw_recorded_bars(axes: Axes, data: Drawable, width: float, labels: Sequence[str]) -> None:
    """Draw dark, dashed outlines in front of the run's bars of the same name. They are narrower than the bars, so that both
    remain visible.

    `width` is the width available for one bar; `labels` names the series that have bars. On a logarithmic axis, points are
    drawn instead of bars and outlines.
    """
    is_log = axes.get_yscale() == "log"
    for label, points in data.recorded.items():
        offset = (labels.index(label) - (len(labels) - 1) / 2) * width
        if is_log:
            axes.plot([point.x + offset for point in points], [point.y for point in points], color=INK, **HOLLOW)
            continue
        axes.bar(
            [point.x + offset for point in points],
            [point.y for point in points],
            width * 0.6,
            fill=False,
            edgecolor=INK,
            linestyle=DASHES,
            linewidth=1.3,
            zorder=2.5,
        )
    for text in axes.texts if data.recorded else ():  # the values of the bars stay readable if an outline crosses them
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    if data.recorded:
        style = HOLLOW if is_log else {"linestyle": DASHES, "linewidth": 1.3}
        axes.plot([], [], color=INK, label=data.recorded_label, **style)


def choose_colour(label: str, data: Drawable) -> str:
    """Return the colour of the run's line labelled `label`. If only the record has that label, return the next colour of
    the palette."""
    names = [*data.labels, *(name for name in data.recorded if name not in data.labels)]
    return PALETTE[names.index(label) % len(PALETTE)]


def _move_to_words(points: Sequence[PlotPoint], labels: Sequence[str], words: Sequence[str]) -> list[PlotPoint]:
    """Return the points, each at the place of its word in `words`. Points whose word is not in `words` are left out."""
    return [replace(point, x=float(words.index(labels[int(point.x)]))) for point in points if labels[int(point.x)] in words]
