"""Draw a plot of the manifest as SVG in the page's colours, below its legend, with the points of other runs over it.

When the pointer is over a mark, the page's script shows the mark's value. The script also zooms: it moves the marks, and reads
from `data-x` and `data-y` how positions become values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup, escape

from gpucourse.figures.axes import format_bar
from gpucourse.figures.rows import Drawable, PlotPoint
from gpucourse.ui.page.scales import Scale, format_size, make_scale, make_word_scale

if TYPE_CHECKING:
    from gpucourse.model.manifest import Plot

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 88, 690, 14, 318
COLOURS, DASHES = 6, 5
MAX_MARKS = 120  # at most this many points of a line have a mark that shows their value
LETTER = 7.2  # approximate width of a letter in units of the drawing
PHONE_LETTER = 11.4  # the same on a phone, for which style.css enlarges the letters
SLANT_WIDTH, SLANT_HEIGHT = 0.64, 0.77  # cosine and sine of 50 degrees, by which style.css turns labels that are too wide
MANY_OF_ANOTHER, MAX_CORNERS = 40, 400  # the maximum numbers of marks and corners of another run's line


class OtherRun(NamedTuple):
    """The points of another run of the exercise. `number` selects its colour and its dashes."""

    number: int
    word: str
    data: Drawable


def draw_chart(
    plot: Plot, data: Drawable, other_runs: Sequence[OtherRun] = (), *, number: int = 0, together: bool = False
) -> Markup:
    """Return the legend, and the plot with its points as SVG. Every text in them is escaped.

    The other runs are hidden until the page's script shows them. With `together`, all are shown, and the axes include them.
    `number` is the run's own number.
    """
    other_runs = [run for run in other_runs if bool(run.data.words) == bool(data.words)]
    data, other_runs = _share_words(data, other_runs, extend=together)
    x, y = _make_scales(plot, [data, *(run.data for run in other_runs if together)])
    parts = [*_draw_axes(plot, x, y), _open_area(), f'<g data-run="{number}">']
    parts += _draw_bars(plot, data, x, y) if plot.kind == "bar" else _draw_lines(plot, data, x, y)
    parts += ["</g>", *_draw_ideal(plot, data, x, y), *_draw_recorded(plot, data, x, y)]
    for run in other_runs:
        state = "" if together else ' class="off"'
        draw_other = _draw_levels if plot.kind == "bar" else _draw_other_lines
        parts += [f'<g data-run="{run.number}"{state}>', *draw_other(plot, data, run, x, y), "</g>"]
    label = escape(f"{plot.title}: {plot.y_title} by {plot.x_title}")
    kind = "word" if data.words else "size" if plot.x.endswith("bytes") else "number"
    axes = f'data-x="{_describe_scale(x, kind)}" data-y="{_describe_scale(y, "number")}"'
    box = f"0 0 {WIDTH} {HEIGHT + _place_labels(x)[1]}"
    head = f'{_draw_legend(plot, data)}<svg class="plot" viewBox="{box}" role="img" aria-label="{label}" {axes}>'
    return Markup("\n".join([head, *parts, "</svg>", "</svg>"]))  # noqa: S704  # numbers, and texts that were escaped one by one


def _share_words(data: Drawable, other_runs: Sequence[OtherRun], *, extend: bool) -> tuple[Drawable, list[OtherRun]]:
    """Return the drawables with the same words under the x axis: the words of the first run or, with `extend`, the words of all
    runs. Points with other words are left out."""
    new_words = [word for run in other_runs for word in run.data.words if extend and word not in data.words]
    words = [*data.words, *dict.fromkeys(new_words)]
    positions = {word: float(index) for index, word in reversed(list(enumerate(words)))}

    def move(drawable: Drawable) -> Drawable:
        if not words:
            return drawable
        series = [
            [
                replace(point, x=positions[drawable.words[int(point.x)]])
                for point in points
                if drawable.words[int(point.x)] in positions
            ]
            for points in drawable.series
        ]
        return replace(drawable, series=series, words=words, ideal=[], recorded={})

    return replace(data, words=words), [run._replace(data=move(run.data)) for run in other_runs]


def _make_scales(plot: Plot, runs: Sequence[Drawable]) -> tuple[Scale, Scale]:
    heights = [value for data in runs for value in data.all_y()]
    log_y = plot.log_y and min(heights) > 0
    y = make_scale(heights, BOTTOM, TOP, log=log_y, from_zero=not log_y)
    if runs[0].words:
        return make_word_scale(runs[0].words, LEFT, RIGHT), y
    lines = [points for data in runs for points in [*data.series, data.ideal, *data.recorded.values()]]
    places = [point.x for points in lines for point in points]
    sizes, has_whole_numbers = plot.x.endswith("bytes"), all(data.whole_x for data in runs)
    return make_scale(places, LEFT, RIGHT, log=plot.log_x and min(places) > 0, sizes=sizes, at_values=has_whole_numbers), y


def _describe_scale(scale: Scale, kind: str) -> str:
    """Return the values at the ends of an axis for the page's script, as JSON in an attribute."""
    return escape(json.dumps({"low": scale.low, "high": scale.high, "log": scale.log, "kind": kind}))


def _open_area() -> str:
    """Return the start tag of the area between the axes. The script clips it when a reader zooms in."""
    width, height = RIGHT - LEFT, BOTTOM - TOP
    place = f'x="{LEFT}" y="{TOP}" width="{width}" height="{height}"'
    return f'<svg class="area" {place} viewBox="{LEFT} {TOP} {width} {height}">'


def _draw_axes(plot: Plot, x: Scale, y: Scale) -> Iterator[str]:
    yield '<g class="ticks-y">'
    for value, label in y.ticks:
        at = y.place(value)
        yield _line("grid", LEFT, at, RIGHT, at)
        yield _text(label, LEFT - 8, at + 4, "end", "small")
    yield "</g>"
    yield _line("axis", LEFT, BOTTOM, RIGHT, BOTTOM)
    yield '<g class="ticks-x">'
    step, slant = _place_labels(x)
    for value, label in x.ticks[::step]:
        at = x.place(value)
        room = int((at - 8) / LETTER / SLANT_WIDTH) if slant else len(label)
        text = label if len(label) <= room else f"{label[: room - 1]}…"
        yield _line("axis", at, BOTTOM, at, BOTTOM + 5)
        drawn = (
            _text(text, at + 4, BOTTOM + 16, "end", "small slant") if slant else _text(text, at, BOTTOM + 20, "middle", "small")
        )
        yield f"<g>{drawn}<title>{escape(label)}</title></g>"
    yield "</g>"
    yield _text(plot.x_title, (LEFT + RIGHT) / 2, HEIGHT + slant - 12, "middle", "")
    middle = (TOP + BOTTOM) / 2
    place = f'x="14" y="{middle}" transform="rotate(-90 14 {middle})"'
    yield f'<text {place} text-anchor="middle">{escape(plot.y_title)}</text>'


def _place_labels(x: Scale) -> tuple[int, int]:
    """Return the interval n at which labels below the axis are drawn, and how much height slanted labels add to the drawing.

    Labels that are too wide side by side are slanted. If there are too many even for that, only every n-th is drawn.
    """
    room = (RIGHT - LEFT) / max(1, len(x.ticks))
    width = LETTER * max((len(label) for _, label in x.ticks), default=0)
    if width <= room:
        return 1, 0
    if room < 2 * LETTER:
        return math.ceil(width / room), 0
    return 1, max(1, int(min(width * PHONE_LETTER / LETTER, RIGHT / SLANT_WIDTH) * SLANT_HEIGHT) - 16)


def _draw_legend(plot: Plot, data: Drawable) -> str:
    """Return the names of the lines or bars as an HTML list that wraps, or an empty string for a single name."""
    marks = [(label, _box(_fill(index), 0, 0, 12, 12)) for index, label in enumerate(data.labels)]
    marks += [(plot.ideal_label, _line("ideal", -3, 6, 15, 6))] if data.ideal else []
    marks += [(data.recorded_label, _circle("recorded", 6, 6))] if data.recorded else []
    if len(marks) < 2:
        return ""
    items = [
        f'<li><svg class="plot key" viewBox="-3 -1 18 14" aria-hidden="true">{mark}</svg> {escape(label)}</li>'
        for label, mark in marks
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


def _draw_lines(plot: Plot, data: Drawable, x: Scale, y: Scale) -> Iterator[str]:
    for index, (label, points) in enumerate(zip(data.labels, data.series, strict=True)):
        if plot.connect and len(points) > 1:
            yield _polyline(f"line {_stroke(index)}", points, x, y)
        sample = _thin(points, MAX_MARKS)
        for point in sample:
            if point.spread and len(points) <= MAX_MARKS:
                low, high = (y.place(value) for value in point.spread)
                yield _line(f"spread {_stroke(index)}", x.place(point.x), low, x.place(point.x), high)
            title, radius = _describe_point(plot, data, label, point), 4.5 if len(sample) <= 40 else 3
            yield _circle(f"p {_fill(index)}", x.place(point.x), y.place(point.y), title, radius)


def _draw_other_lines(plot: Plot, data: Drawable, run: OtherRun, x: Scale, y: Scale) -> Iterator[str]:
    """Yield the dashed lines of another run, in the colour of their series, or in the run's own colour if there is only one
    series."""
    for index, label, points in _list_lines(data, run.data):
        colour = run.number if len(data.labels) == 1 else index
        if plot.connect and len(points) > 1:
            yield _polyline(f"line {_stroke(colour)} d{run.number % DASHES}", _thin(points, MAX_CORNERS), x, y)
        for point in _thin(points, MANY_OF_ANOTHER):
            title = f"{run.word}, {_describe_point(plot, run.data, label, point)}"
            yield _circle(f"p {_fill(colour)}", x.place(point.x), y.place(point.y), title, 3)


def _draw_levels(plot: Plot, data: Drawable, run: OtherRun, x: Scale, y: Scale) -> Iterator[str]:
    """Yield the values of another run as lines across the bars."""
    width = _find_bar_width(data)
    for index, label, points in _list_lines(data, run.data):
        for point in points:
            edge, at = x.place(point.x) + (index - len(data.series) / 2) * width, y.place(point.y)
            yield _line(f"line {_stroke(run.number)} d{run.number % DASHES}", edge, at, edge + width, at)
            title = f"{run.word}, {_describe_point(plot, run.data, label, point)}"
            yield _circle(f"p {_fill(run.number)}", edge + width / 2, at, title, 3.5)


def _list_lines(data: Drawable, drawable: Drawable) -> Iterator[tuple[int, str, list[PlotPoint]]]:
    """Yield the series of another run, each with the index of the series in `data` that has the same label."""
    for index, (label, points) in enumerate(zip(drawable.labels, drawable.series, strict=True)):
        yield data.labels.index(label) if label in data.labels else index, label, points


def _thin(points: Sequence[PlotPoint], limit: int) -> Sequence[PlotPoint]:
    """Return at most `limit` of the points, evenly spaced."""
    return points if len(points) <= limit else points[:: -(-len(points) // limit)]


def _find_bar_width(data: Drawable) -> float:
    slot = (RIGHT - LEFT) / max(1, len(data.words))
    return min(slot * 0.8 / max(1, len(data.series)), 70)


def _draw_bars(plot: Plot, data: Drawable, x: Scale, y: Scale) -> Iterator[str]:
    count, width = len(data.series), _find_bar_width(data)
    floor = y.place(max(y.low, 0.0) if not y.log else y.low)
    for index, (label, points) in enumerate(zip(data.labels, data.series, strict=True)):
        for point in points:
            edge = x.place(point.x) + (index - count / 2) * width
            top, bottom = sorted((y.place(point.y), floor))
            title = _describe_point(plot, data, label, point)
            if y.log:  # the length of a bar means nothing on a logarithmic axis
                yield _circle(f"p {_fill(index)}", edge + width / 2, y.place(point.y), title)
            else:
                yield _box(f"p {_fill(index)}", edge + 1, top, width - 2, max(bottom - top, 1), title)
            if point.spread:
                low, high = (y.place(value) for value in point.spread)
                yield _line("axis", edge + width / 2, low, edge + width / 2, high)
            if width >= 34:
                yield _text(format_bar(point.y), edge + width / 2, top - 7, "middle", "small")


def _draw_ideal(plot: Plot, data: Drawable, x: Scale, y: Scale) -> Iterator[str]:
    points = data.ideal
    if plot.kind == "bar":
        half = min((RIGHT - LEFT) / max(1, len(data.words)) * 0.42, 110)
        for point in points:
            at = y.place(point.y)
            yield _line("ideal", x.place(point.x) - half, at, x.place(point.x) + half, at)
    elif points:
        yield _polyline("ideal", points, x, y)


def _draw_recorded(plot: Plot, data: Drawable, x: Scale, y: Scale) -> Iterator[str]:
    """Yield the points that the course's authors measured on a GPU, as dashed lines with hollow marks in the colour of the
    run's line."""
    for label, points in data.recorded.items():
        index = data.labels.index(label) if label in data.labels else len(data.labels)
        if plot.kind == "line" and plot.connect:
            yield _polyline(f"line recorded {_stroke(index)}", points, x, y)
        for point in points:
            title = f"{_describe_point(plot, data, label, point)} ({data.recorded_label})"
            yield _circle(f"p recorded {_stroke(index)}", x.place(point.x), y.place(point.y), title)


def _polyline(kind: str, points: Sequence[PlotPoint], x: Scale, y: Scale) -> str:
    path = " ".join(f"{x.place(point.x)},{y.place(point.y)}" for point in points)
    return f'<polyline class="{kind}" points="{path}"/>'


def _circle(kind: str, x: float, y: float, title: str = "", radius: float = 4.5) -> str:
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{radius}">{_title(title)}</circle>'


def _title(text: str) -> str:
    """Return the text that is shown when the pointer is over a mark."""
    return f"<title>{escape(text)}</title>" if text else ""


def _describe_point(plot: Plot, data: Drawable, label: str, point: PlotPoint) -> str:
    """Return the value of a point in words."""
    position = (
        data.words[int(point.x)] if data.words else format_size(point.x) if plot.x.endswith("bytes") else f"{point.x:,.6g}"
    )
    spread = f" ({point.spread[0]:,.4g} to {point.spread[1]:,.4g})" if point.spread else ""
    return f"{label}: {point.y:,.5g}{spread} at {position}"


def _stroke(index: int) -> str:
    return f"k{index % COLOURS}"


def _fill(index: int) -> str:
    """Return the classes of a mark: from the seventh series on, the colours are used again, for hollow marks."""
    return f"f{index % COLOURS}" if index < COLOURS else f"k{index % COLOURS} hollow"


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"/>'


def _box(kind: str, x: float, y: float, width: float, height: float, title: str = "") -> str:
    place = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"'
    return f'<rect class="{kind}" {place}>{_title(title)}</rect>'


def _text(text: str, x: float, y: float, anchor: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
