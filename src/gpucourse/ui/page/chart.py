"""Draw a plot of the manifest as SVG in the page's colours. When the pointer is over a mark, the mark's value is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from gpucourse.figures.axes import short_number
from gpucourse.figures.rows import Drawable, PlotPoint
from gpucourse.ui.page.scales import Scale, format_size, make_scale, make_word_scale

if TYPE_CHECKING:
    from gpucourse.model.manifest import Plot

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 78, 706, 34, 338
COLOURS = 6
MANY = 120  # at most this many points of a line have a mark that shows their value
MAX_LABEL = 40
LETTER = 7.2  # approximate width of a letter in units of the drawing


def draw_chart(plot: Plot, data: Drawable) -> Markup:
    """Return the plot with its points as SVG. Every text in it is escaped."""
    x, y = _make_scales(plot, data)
    parts = [*_draw_axes(plot, x, y), *_draw_legend(plot, data)]
    parts += _draw_bars(plot, data, x, y) if plot.kind == "bar" else _draw_lines(plot, data, x, y)
    parts += [*_draw_ideal(plot, data, x, y), *_draw_recorded(plot, data, x, y)]
    label = escape(f"{plot.title}: {plot.y_title} by {plot.x_title}")
    head = f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    return Markup("\n".join([head, *parts, "</svg>"]))  # noqa: S704  # numbers, and texts that were escaped one by one


def _make_scales(plot: Plot, data: Drawable) -> tuple[Scale, Scale]:
    points = [point for points in [*data.series, data.ideal, *data.recorded.values()] for point in points]
    log_y = plot.log_y and min(data.all_y()) > 0
    y = make_scale(data.all_y(), BOTTOM, TOP, log=log_y, from_zero=not log_y)
    if data.words:
        return make_word_scale(data.words, LEFT, RIGHT), y
    places = [point.x for point in points]
    sizes = plot.x.endswith("bytes")
    return make_scale(places, LEFT, RIGHT, log=plot.log_x and min(places) > 0, sizes=sizes, at_values=data.whole_x), y


def _draw_axes(plot: Plot, x: Scale, y: Scale) -> Iterator[str]:
    for value, label in y.ticks:
        at = y.place(value)
        yield _line("grid", LEFT, at, RIGHT, at)
        yield _text(label, LEFT - 8, at + 4, "end", "small")
    yield _line("axis", LEFT, BOTTOM, RIGHT, BOTTOM)
    room = int((RIGHT - LEFT) / max(1, len(x.ticks)) / LETTER)
    step = 1 if room >= 3 else 4
    for value, label in x.ticks[::step]:
        yield _line("axis", x.place(value), BOTTOM, x.place(value), BOTTOM + 5)
        text = label if len(label) <= max(room * step, 3) else f"{label[: max(room * step, 3) - 1]}…"
        yield f"<g>{_text(text, x.place(value), BOTTOM + 20, 'middle', 'small')}<title>{escape(label)}</title></g>"
    yield _text(plot.x_title, (LEFT + RIGHT) / 2, HEIGHT - 12, "middle", "")
    middle = (TOP + BOTTOM) / 2
    place = f'x="14" y="{middle}" transform="rotate(-90 14 {middle})"'
    yield f'<text {place} text-anchor="middle">{escape(plot.y_title)}</text>'


def _draw_legend(plot: Plot, data: Drawable) -> Iterator[str]:
    marks = [(label, _box(_fill(index), 0, 0, 12, 12)) for index, label in enumerate(data.labels)]
    marks += [(plot.ideal_label, _line("ideal", -3, 6, 15, 6))] if data.ideal else []
    marks += [(data.recorded_label, _circle("recorded", 6, 6))] if data.recorded else []
    if len(marks) < 2:
        return
    at = float(LEFT)
    for label, mark in marks:
        text = label if len(label) <= MAX_LABEL else f"{label[: MAX_LABEL - 1]}…"
        if at + 24 + len(text) * LETTER > WIDTH:
            yield _text("…", at, 18, "start", "small")
            return
        yield f'<g transform="translate({at + 3:.1f} 8)">{mark}</g>'
        yield _text(text, at + 24, 18, "start", "small")
        at += 40 + len(text) * LETTER


def _draw_lines(plot: Plot, data: Drawable, x: Scale, y: Scale) -> Iterator[str]:
    for index, (label, points) in enumerate(zip(data.labels, data.series, strict=True)):
        if plot.connect and len(points) > 1:
            yield _polyline(f"line {_stroke(index)}", points, x, y)
        sample = points if len(points) <= MANY else points[:: -(-len(points) // MANY)]
        for point in sample:
            if point.spread and len(points) <= MANY:
                low, high = (y.place(value) for value in point.spread)
                yield _line(f"spread {_stroke(index)}", x.place(point.x), low, x.place(point.x), high)
            title, radius = _describe_point(plot, data, label, point), 4.5 if len(sample) <= 40 else 3
            yield _circle(f"p {_fill(index)}", x.place(point.x), y.place(point.y), title, radius)


def _draw_bars(plot: Plot, data: Drawable, x: Scale, y: Scale) -> Iterator[str]:
    count = len(data.series)
    slot = (RIGHT - LEFT) / max(1, len(data.words))
    width = min(slot * 0.8 / max(1, count), 70)
    floor = y.place(max(y.low, 0.0) if not y.log else y.low)
    for index, (label, points) in enumerate(zip(data.labels, data.series, strict=True)):
        for point in points:
            edge = x.place(point.x) + (index - count / 2) * width
            top, bottom = sorted((y.place(point.y), floor))
            title = _describe_point(plot, data, label, point)
            yield _box(f"p {_fill(index)}", edge + 1, top, width - 2, max(bottom - top, 1), title)
            if point.spread:
                low, high = (y.place(value) for value in point.spread)
                yield _line("axis", edge + width / 2, low, edge + width / 2, high)
            if width >= 34:
                yield _text(short_number(float(f"{point.y:.3g}")), edge + width / 2, top - 5, "middle", "small")


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
    return f"f{index % COLOURS}"


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _box(kind: str, x: float, y: float, width: float, height: float, title: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" {place}>{_title(title)}</rect>'


def _text(text: str, x: float, y: float, anchor: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
