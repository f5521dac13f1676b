"""Draw a plot of the manifest as PNG and SVG. matplotlib is imported only when something is drawn. Its object interface needs
no global figure and no window system."""

from __future__ import annotations

import importlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.errors import MissingError
from gpucourse.figures.axes import number_axis, point_axis, short_number, size_axis, wrap_words
from gpucourse.figures.overlay import RecordedPlot, add_record, draw_recorded_bars, draw_recorded_lines, record_alone
from gpucourse.figures.rows import Drawable, PlotPoint, drawable, printable
from gpucourse.figures.style import GREY, INK, MARKERS, PALE, PALETTE, STYLE
from gpucourse.storage import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpucourse.model.manifest import Plot

# A quarter more bytes for a quarter less time than zlib's usual level 6.
_SAVED: dict[str, dict[str, Any]] = {
    "png": {"metadata": {"Software": "gpucourse"}, "pil_kwargs": {"compress_level": 3}},
    "svg": {"metadata": {"Date": None, "Creator": "gpucourse"}},
}
FEW = 8
LONG_WORD = 9  # letters; longer words below many bars are rotated
ROW_OF_WORDS = FEW * (LONG_WORD + 2)  # letters, with a space after each word, that fit into one row below bars
MANY_BARS = 12  # a picture with more bars shows their values in smaller letters
WORD_WIDTH = 6  # letters; eight words of this length fit under the x axis
LEFT_EDGE = 0.012  # share of the picture's width that stays free to the left of the y axis's title
ROW, MAX_OVER = 0.055, 0.16  # shares of the picture's height: one row of a legend, and the maximum for further rows
MANY = 40  # a line with more points has no marks: they would hide it


def draw(
    plot: Plot, metrics: Mapping[str, Any], *, subtitle: str, folder: Path, record: RecordedPlot | None = None
) -> list[Path]:
    """Draw `<file>.png` and `<file>.svg` into `folder`, and return their paths. Each file is complete when it appears.

    The points of `record` are added, dashed and labelled as another GPU's. If the run has no points for a plot that only a GPU
    measures, the plot shows only the record's points. Values that are missing or not finite are left out, and the picture says
    how many.

    Raises MissingError if there is nothing to draw or no matplotlib, and StorageError if the files cannot be written.
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


def make_ready() -> None:
    """Import the modules that drawing needs, so that the first picture takes a tenth of the time. Do nothing if matplotlib is
    missing."""
    with suppress(MissingError), _matplotlib():
        for name in ("figure", "backends.backend_agg", "backends.backend_svg"):  # `savefig` looks for the last two by name
            importlib.import_module(f"matplotlib.{name}")


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
    if notes := [text for text in ("; ".join(data.notes), data.caption) if text]:
        figure.text(0.98, 0.012, "\n".join(notes), fontsize=7.5, color=GREY, ha="right")
    axes.set_xlabel(plot.x_title)
    axes.set_ylabel(plot.y_title)
    axes.grid(visible=True, axis="y", color=PALE, linewidth=0.8)
    axes.set_axisbelow(True)
    if plot.kind == "bar":
        _bars(axes, plot, data)
    else:
        _lines(axes, plot, data)
    if len(axes.get_legend_handles_labels()[0]) > 1 or data.recorded or any(series.low for series in plot.series):
        _place_legend(axes)
    _make_room_at_the_left(axes)
    return figure


def _make_room_at_the_left(axes: Axes) -> None:
    """Move the left end of the axes to the right if long numbers would push the title of the y axis out of the picture."""
    left, bottom, width, height = axes.get_position().bounds
    box = axes.yaxis.get_tightbbox()
    whole = axes.bbox.width / width
    missing = LEFT_EDGE - box.x0 / whole if box is not None else 0.0
    if missing > 0:
        axes.set_position((left + missing, bottom, width - missing, height))


def _place_legend(axes: Axes) -> None:
    """Put a legend above the axes, where nothing is drawn, in as few rows as their width allows. If it has more than one row,
    the axes become shorter. A legend with very many rows is put to the right of the axes."""
    left, bottom, width, height = axes.get_position().bounds
    placement = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.99), "borderaxespad": 0.0, "columnspacing": 1.4}
    for columns in range(len(axes.get_legend_handles_labels()[0]), 0, -1):
        box = axes.legend(frameon=False, fontsize=8.5, ncols=columns, **placement).get_window_extent()
        if box.width <= axes.bbox.width + axes.bbox.x0 / 2:
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
        colour = PALETTE[index % len(PALETTE)]
        x, y = [point.x for point in points], [point.y for point in points]
        shape = (index + index // len(PALETTE)) % len(MARKERS)  # a colour that is used again gets another mark
        marker = MARKERS[shape] if len(points) <= MANY else None
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
    places = [point.x for points in [*data.series, *data.recorded.values()] for point in points]
    if data.words and max(map(len, data.words)) > WORD_WIDTH and len(data.words) > FEW:
        _turn_words(axes, data.words)
    elif data.words:
        axes.set_xticks(range(len(data.words)), data.words)
    elif plot.x.endswith("bytes"):
        size_axis(axes.xaxis, places, log=plot.log_x)
    elif data.whole_x and len(set(places)) <= FEW:
        point_axis(axes.xaxis, places)
    else:
        number_axis(axes.xaxis, whole=data.whole_x, log=plot.log_x)
    number_axis(axes.yaxis, whole=False, log=plot.log_y)


def _turn_words(axes: Axes, words: Sequence[str]) -> None:
    """Put many long words under the x axis: rotated, in smaller letters, and with more room below."""
    left, bottom, width, height = axes.get_position().bounds
    axes.set_position((left, bottom + 0.15, width, height - 0.15))
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
    value_size = 9 if count * len(data.words) <= MANY_BARS else 7
    for place, index in enumerate(series_indexes):
        label, points = data.labels[index], data.series[index]
        if not points:  # only the record has bars of this series
            continue
        places = [point.x + (place - (count - 1) / 2) * width for point in points]
        bars = axes.bar(
            places,
            [point.y for point in points],
            width * 0.92,
            color=PALETTE[index % len(PALETTE)],
            label=label,
            zorder=2,
            yerr=_list_errors(points),
            error_kw={"ecolor": INK, "elinewidth": 1.4, "capsize": 4},
        )
        axes.bar_label(bars, labels=[short_number(float(f"{point.y:.3g}")) for point in points], padding=3, fontsize=value_size)
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
    if plot.log_y:
        axes.set_yscale("log")
    axes.margins(x=0.08, y=0.14)
    axes.set_xlim(-0.6, len(data.words) - 0.4)  # include the places without a bar
    wrapped = wrap_words(data.words)
    longest = max(len(line) for word in wrapped for line in word.split("\n"))
    too_wide = max(map(len, data.words)) > LONG_WORD or len(wrapped) * (longest + 1) > ROW_OF_WORDS
    if len(wrapped) > FEW and too_wide:
        _turn_words(axes, data.words)
    else:
        axes.set_xticks(range(len(wrapped)), wrapped)
    axes.tick_params(axis="x", length=0)
    number_axis(axes.yaxis, whole=False, log=plot.log_y)
