"""Draw a plot of the manifest as PNG and SVG. matplotlib is imported only when something is drawn. Its object interface needs
no global figure and no window system."""

from __future__ import annotations

import io
import logging
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.errors import MissingError
from gpucourse.figures.axes import format_bar, number_axis, point_axis, size_axis, wrap_words
from gpucourse.figures.labels import Labelled, label_lines
from gpucourse.figures.overlay import (
    RecordedPlot,
    add_record,
    choose_colour,
    draw_recorded_bars,
    draw_recorded_lines,
    record_alone,
)
from gpucourse.figures.rows import Drawable, PlotPoint, drawable, printable
from gpucourse.figures.style import GREY, INK, MARKERS, MAX_MARKS, PALE, PALETTE, STYLE
from gpucourse.model.manifest import Plot
from gpucourse.storage import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Compared with zlib's usual level 6, level 3 needs a quarter less time and writes a quarter more bytes.
_SAVED: dict[str, dict[str, Any]] = {
    "png": {"metadata": {"Software": "gpucourse"}, "pil_kwargs": {"compress_level": 3}},
    "svg": {"metadata": {"Date": None, "Creator": "gpucourse"}},
}
FEW_PLACES = 8
LONG_WORD = 9  # letters; longer words below many bars are rotated
ROW_OF_WORDS = FEW_PLACES * (LONG_WORD + 2)  # letters, with a space after each word, that fit into one row below bars
MANY_BARS = 12  # a picture with more bars shows their values in smaller letters
WORD_WIDTH = 6  # letters; eight words of this length fit under the x axis
LEFT_EDGE = 0.012  # share of the picture's width that stays free to the left of the y axis's title
NOTE_WIDTH, NOTE_GAP = 120, 3.0  # letters of a note in a line; pixels between the notes and the words above them
ROW, MAX_OVER = 0.055, 0.16  # shares of the picture's height: one row of a legend, and the maximum for further rows


def draw(
    plot: Plot, metrics: Mapping[str, Any], *, subtitle: str, folder: Path, record: RecordedPlot | None = None
) -> list[Path]:
    """Draw `<file>.png` and `<file>.svg` into `folder`, and return their paths. Each file is complete when it appears.

    The points of `record` are added: dashed, and with a label that names the other GPU. If the run has no points for a plot
    that only a GPU measures, the plot shows only the points of the record. Values that are missing or not finite are left out,
    and the picture names them.

    Raises MissingError if there is nothing to draw or if matplotlib is missing, and StorageError if the files cannot be
    written.
    """
    data = collect_points(plot, metrics, record)
    with _matplotlib():
        try:
            pictures = _pictures(_figure(plot, data, subtitle))
        except (ArithmeticError, ValueError, RuntimeError) as error:  # numbers that an axis cannot show
            raise MissingError(
                f"the picture {plot.file} cannot be drawn: {printable(str(error))}", hint="look at the run's metrics.json"
            ) from error
    paths = [folder / f"{plot.file}.{ending}" for ending in pictures]
    for path, picture in zip(paths, pictures.values(), strict=True):
        write_bytes(path, picture)
    return paths


def collect_points(plot: Plot, metrics: Mapping[str, Any], record: RecordedPlot | None) -> Drawable:
    """Return what a plot shows: the points of the run, and those of the record if there is one. Raises MissingError if there is
    nothing to draw."""
    if record is None:
        return drawable(plot, metrics)
    try:
        data = drawable(plot, metrics)
    except MissingError:
        if plot.evidence != "gpu":
            raise
        return record_alone(plot, record)
    return add_record(plot, data, record)


def _pictures(figure: Figure) -> dict[str, bytes]:
    """Return the bytes of a figure in each format."""
    pictures = {}
    for ending, options in _SAVED.items():
        picture = io.BytesIO()
        figure.savefig(picture, format=ending, dpi=160, **options)
        pictures[ending] = picture.getvalue()
    return pictures


@contextmanager
def _matplotlib() -> Iterator[None]:
    """Import matplotlib, and use the course's style inside the block. Raises MissingError if matplotlib cannot be imported."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # no warning if the home folder cannot hold its caches
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingError(
            f"matplotlib, which draws the pictures, cannot be imported ({error})", hint="pip install 'matplotlib>=3.8'"
        ) from error
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a letter that the font lacks is drawn as a box, without a warning
        yield


def _figure(plot: Plot, data: Drawable, subtitle: str) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.4, 4.6), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.105, 0.155, 0.865, 0.66))
    figure.text(0.02, 0.955, plot.title, fontsize=13, fontweight="bold", va="top")
    figure.text(0.02, 0.89, printable(subtitle), fontsize=8.5, color=GREY, va="top")
    axes.set_xlabel(plot.x_title)
    axes.set_ylabel(plot.y_title)
    axes.grid(visible=True, axis="y", color=PALE, linewidth=0.8)
    axes.set_axisbelow(True)
    if plot.kind == "bar":
        _bars(axes, plot, data)
    else:
        _lines(axes, plot, data)
    _write_notes(axes, data)
    _make_room_at_the_left(axes)
    if plot.kind == "line":
        _label_lines(axes, plot, data)
    has_band = any(series.low for series in plot.series)
    if len(axes.get_legend_handles_labels()[0]) > 1 or data.recorded or (has_band and len(plot.series) == 1 and not plot.by):
        _place_legend(axes)
    return figure


def _write_notes(axes: Axes, data: Drawable) -> None:
    """Write the notes below the axes, which become shorter if there is too little space for the words below them."""
    lines = [line for text in ("; ".join(data.notes), data.caption) for line in textwrap.wrap(text, NOTE_WIDTH)]
    note = axes.figure.text(0.98, 0.012, "\n".join(lines), fontsize=7.5, color=GREY, ha="right")
    left, bottom, width, height = axes.get_position().bounds
    below = axes.xaxis.get_tightbbox()
    missing = (note.get_window_extent().y1 if lines else 0.0) + NOTE_GAP - (below.y0 if below is not None else axes.bbox.y0)
    if missing > 0:
        share = missing / (axes.bbox.height / height)
        axes.set_position((left, bottom + share, width, height - share))


def _label_lines(axes: Axes, plot: Plot, data: Drawable) -> None:
    """Write a label next to each line. If there is too little space for that, the legend will name the lines."""
    names = [*data.labels, *(label for label in data.recorded if label not in data.labels)]
    lines = [
        Labelled(label, choose_colour(label, data), points)
        for label in names
        for points in [data.series[data.labels.index(label)] if label in data.labels else data.recorded[label]]
        if points
    ]
    lines += [Labelled(plot.ideal_label, GREY, data.ideal)] if data.ideal else []
    if label_lines(axes, lines):
        for line in axes.lines:
            if line.get_label() in {line.label for line in lines}:
                line.set_label("_")


def _make_room_at_the_left(axes: Axes) -> None:
    """Move the left end of the axes to the right if long numbers on the y axis would push its title out of the picture."""
    left, bottom, width, height = axes.get_position().bounds
    box = axes.yaxis.get_tightbbox()
    figure_width = axes.bbox.width / width
    missing = LEFT_EDGE - box.x0 / figure_width if box is not None else 0.0
    if missing > 0:
        axes.set_position((left + missing, bottom, width - missing, height))


def _place_legend(axes: Axes) -> None:
    """Put a legend in the free space above the axes, in as few rows as their width allows. If it has more than one row, the
    axes become shorter. A legend with very many rows is put to the right of the axes."""
    left, bottom, width, height = axes.get_position().bounds
    placement = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.99), "borderaxespad": 0.0, "columnspacing": 1.4}
    for columns in range(len(axes.get_legend_handles_labels()[0]), 0, -1):
        box = axes.legend(frameon=False, fontsize=8.5, ncols=columns, **placement).get_window_extent()
        if box.width <= axes.bbox.width:
            break
    figure_height = axes.bbox.height / height
    overflow = box.height / figure_height - ROW
    if overflow <= MAX_OVER:
        axes.set_position((left, bottom, width, height - max(0.0, overflow)))
        return
    box = axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5)).get_window_extent()
    axes.set_position((left, bottom, width - box.width / (axes.bbox.width / width), height))


def _lines(axes: Axes, plot: Plot, data: Drawable) -> None:
    for index, (label, points) in enumerate(zip(data.labels, data.series, strict=True)):
        if not points:  # its name would be in the legend
            continue
        colour = PALETTE[index % len(PALETTE)]
        x, y = [point.x for point in points], [point.y for point in points]
        shape = (index + index // len(PALETTE)) % len(MARKERS)  # a colour that is used again gets another mark
        marker = MARKERS[shape] if len(points) <= MAX_MARKS or not plot.connect else None
        width = 1.9 if plot.connect else 0
        axes.plot(x, y, color=colour, marker=marker, markersize=5, linewidth=width, label=label, zorder=3)
        banded = [(point.x, *point.spread) for point in points if point.spread]
        if banded:
            at, low, high = zip(*banded, strict=True)
            axes.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
    if data.ideal:
        x, y = [point.x for point in data.ideal], [point.y for point in data.ideal]
        axes.plot(x, y, color=GREY, linestyle=(0, (5, 4)), linewidth=1.3, label=plot.ideal_label, zorder=2)
    draw_recorded_lines(axes, plot, data)
    if plot.log_x:
        axes.set_xscale("log")
    if plot.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, *data.all_y()))
    _scale_x_axis(axes, plot, data)
    number_axis(axes.yaxis, whole=False, log=plot.log_y)


def _scale_x_axis(axes: Axes, plot: Plot, data: Drawable) -> None:
    """Label the x axis of a line plot with words, sizes or numbers."""
    places = [point.x for points in [*data.series, *data.recorded.values()] for point in points]
    if data.words and max(map(len, data.words)) > WORD_WIDTH and len(data.words) > FEW_PLACES:
        _turn_words(axes, data.words)
    elif data.words:
        axes.set_xticks(range(len(data.words)), data.words)
    elif plot.x.endswith("bytes"):
        size_axis(axes.xaxis, places, log=plot.log_x)
    elif data.whole_x and len(set(places)) <= FEW_PLACES:
        point_axis(axes.xaxis, places)
    else:
        number_axis(axes.xaxis, whole=data.whole_x, log=plot.log_x)


def _turn_words(axes: Axes, words: Sequence[str]) -> None:
    """Put many long words under the x axis: rotated, and in smaller letters."""
    axes.set_xticks(range(len(words)), words, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)


def _list_errors(points: Sequence[PlotPoint]) -> list[list[float]] | None:
    """Return how far the spread of each bar reaches below and above its value, or None if no bar has a spread."""
    if not any(point.spread for point in points):
        return None
    spreads = [point.spread or (point.y, point.y) for point in points]
    lows = [max(0.0, point.y - low) for point, (low, _) in zip(points, spreads, strict=True)]
    return [lows, [max(0.0, high - point.y) for point, (_, high) in zip(points, spreads, strict=True)]]


def _bars(axes: Axes, plot: Plot, data: Drawable) -> None:
    series_indexes = [index for index, points in enumerate(data.series) if points or data.labels[index] in data.recorded]
    count = len(series_indexes)
    width = min(0.8 / count, 0.45)
    if plot.log_y:
        axes.set_yscale("log")
    value_size = 9 if count * len(data.words) <= MANY_BARS else 7
    for place, index in enumerate(series_indexes):
        label, points = data.labels[index], data.series[index]
        if not points:  # only the record has bars of this series
            continue
        places = [point.x + (place - (count - 1) / 2) * width for point in points]
        colour, numbers = PALETTE[index % len(PALETTE)], [format_bar(point.y) for point in points]
        errors: dict[str, Any] = {"yerr": _list_errors(points), "zorder": 2, "label": label}
        if plot.log_y:  # the length of a bar means nothing on a logarithmic axis
            marker = MARKERS[index % len(MARKERS)]
            axes.errorbar(places, [point.y for point in points], fmt=marker, color=colour, capsize=4, elinewidth=1.4, **errors)
            for x, point, number in zip(places, points, numbers, strict=True):
                top = point.spread[1] if point.spread else point.y
                axes.annotate(number, (x, top), (0, 6), textcoords="offset points", ha="center", fontsize=value_size)
            continue
        style = {"ecolor": INK, "elinewidth": 1.4, "capsize": 4}
        bars = axes.bar(places, [point.y for point in points], width * 0.92, color=colour, error_kw=style, **errors)
        axes.bar_label(bars, labels=numbers, padding=3, fontsize=value_size)
    for index, point in enumerate(data.ideal):
        reach = max(count * width, 0.45) / 2 + 0.06
        axes.plot(
            [point.x - reach, point.x + reach],
            [point.y, point.y],
            color=INK,
            linestyle=(0, (4, 3)),
            linewidth=1.4,
            label=plot.ideal_label if index == 0 else None,
            zorder=3,
        )
    draw_recorded_bars(axes, data, width, [data.labels[index] for index in series_indexes])
    for text in axes.texts if data.ideal else ():  # the values of the bars stay readable if a dashed line crosses them
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
        text.set_zorder(4)
    axes.margins(x=0.08, y=0.14)
    axes.set_xlim(-0.6, len(data.words) - 0.4)  # include the places without a bar
    wrapped = wrap_words(data.words)
    longest = max(len(line) for word in wrapped for line in word.split("\n"))
    too_wide = max(map(len, data.words)) > LONG_WORD or len(wrapped) * (longest + 1) > ROW_OF_WORDS
    if len(wrapped) > FEW_PLACES and too_wide:
        _turn_words(axes, data.words)
    else:
        axes.set_xticks(range(len(wrapped)), wrapped)
    axes.tick_params(axis="x", length=0)
    number_axis(axes.yaxis, whole=False, log=plot.log_y)
