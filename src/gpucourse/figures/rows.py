"""Turn rows of the metrics into points to draw. The picture says which values cannot be drawn, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from gpucourse.errors import MissingError
from gpucourse.model.manifest import Plot, Series

MAX_ROWS = 2000
"""The maximum number of rows in a picture: more would not fit into its columns of pixels."""

MAX_WORDS, MAX_LINES = 100, 24
_MAX_NAMES = 6  # a note names at most this many values that are left out for the same reason
_MAX_TEXT = 200
_MAX_NUMBER = 1e100  # an axis needs space around its values, and a logarithmic axis computes their powers


@dataclass(frozen=True, kw_only=True)
class PlotPoint:
    """One value to draw, with the spread around it (low, high) if it is known."""

    x: float
    y: float
    spread: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Drawable:
    """The contents of a plot: the points and the label of each series, the ideal points, and the words under an x axis without
    numbers.

    `recorded` has the points of a GPU's record, by the label of their series; `recorded_label` and `caption` name their source.
    """

    series: list[list[PlotPoint]]
    labels: list[str]
    ideal: list[PlotPoint]
    words: list[str]
    whole_x: bool
    notes: list[str] = field(default_factory=list)
    recorded: dict[str, list[PlotPoint]] = field(default_factory=dict)
    recorded_label: str = ""
    caption: str = ""

    def all_y(self) -> list[float]:
        """Return every value on the y axis, including ideal points, recorded points and spreads."""
        points = [point for points in [*self.series, self.ideal, *self.recorded.values()] for point in points]
        return [value for point in points for value in (point.y, *(point.spread or ()))]


def drawable(plot: Plot, metrics: Mapping[str, Any]) -> Drawable:
    """Return the points of a plot. Raises MissingError if the metrics contain nothing to draw."""
    all_rows = find_rows(plot, metrics)
    if not all_rows:
        raise MissingError(f"the run has no {plot.rows}", hint="look at the run's metrics.json")
    worded = plot.kind == "bar" or _has_words(plot, all_rows[:MAX_ROWS])
    rows = _thin(all_rows, MAX_WORDS if worded else MAX_ROWS)
    words = [printable(str(row.get(plot.x))) for row in rows] if worded else []
    places: list[float | None] = (
        [*map(float, range(len(rows)))] if words else [_number(row.get(plot.x), plot.log_x) for row in rows]
    )
    labels: list[str] = []
    series: list[list[PlotPoint]] = []
    gaps: list[_Gap] = []
    more_lines = 0
    for line in plot.series:
        for name, indexes in _groups(plot, rows).items():
            if len(series) == MAX_LINES:
                more_lines += 1
                continue
            labels.append(_name_line(plot, line, name))
            some_rows, some_places = [rows[index] for index in indexes], [places[index] for index in indexes]
            series.append(_points(plot, some_rows, some_places, line.key, (line.low, line.high)))
            gaps += _find_gaps(plot, some_rows, some_places, line, labels[-1] if len(plot.series) > 1 or plot.by else "")
    if not any(series):
        keys = ", ".join(line.key for line in plot.series)
        raise MissingError(
            f"no row of {plot.rows} has a number for {keys}",
            hint="look at the run's metrics.json: the script writes null for what it did not measure",
        )
    notes = _describe_gaps(plot, gaps, {label for label, points in zip(labels, series, strict=True) if not points})
    notes += [f"{len(rows):,} of {len(all_rows):,} rows drawn"] if len(rows) < len(all_rows) else []
    notes += [f"{more_lines} more lines not drawn"] if more_lines else []
    has_whole_x = not words and all(place is not None and place.is_integer() for place in places)
    ideal = _ideal(plot, rows, places, series)
    return Drawable(series=series, labels=labels, ideal=ideal, words=words, whole_x=has_whole_x, notes=notes)


def _name_line(plot: Plot, line: Series, name: str) -> str:
    """Return the label of a line: the label of its series, its value of `by`, or both if one alone is ambiguous."""
    if not plot.by:
        return line.label
    if _is_digits(name):
        return f"{line.label} {name}"
    return name if len(plot.series) == 1 else f"{line.label}: {name}"


def _is_digits(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


@dataclass(frozen=True)
class _Gap:
    """A value that is not drawn: why, the label of its line (empty if there is only one), and its place on the x axis."""

    reason: str
    label: str
    place: str


def _find_gaps(
    plot: Plot, rows: Sequence[Mapping[str, Any]], places: Sequence[float | None], line: Series, label: str
) -> Iterator[_Gap]:
    for row, place in zip(rows, places, strict=True):
        x, y = row.get(plot.x), row.get(line.key)
        if place is None:
            yield _Gap(_explain(x, plot.log_x), label, "")
        elif _scale(plot, y) is None:
            reason = row.get(line.reason) if line.reason else None
            yield _Gap(printable(str(reason)) if reason else _explain(y, plot.log_y), label, printable(str(x)))


def _explain(value: object, log: bool) -> str:
    """Return why an axis cannot show a value."""
    if value is None:
        return "not measured"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "not a number"
    return "not above 0, on a logarithmic axis" if log and _number(value, False) is not None else "not finite"


def _describe_gaps(plot: Plot, gaps: Sequence[_Gap], empty: set[str]) -> list[str]:
    """Return a note that names the values that are not drawn, by reason. `empty` contains the labels of lines without any
    value."""
    notes = []
    for reason, group in groupby(sorted(gaps, key=lambda gap: gap.reason), key=lambda gap: gap.reason):
        same = list(group)
        names = dict.fromkeys(
            gap.label if gap.label in empty else " at ".join(text for text in (gap.label, gap.place) if text) for gap in same
        )
        if len(names) > _MAX_NAMES or not all(names):
            names = {f"{len(same)} value{'s' if len(same) > 1 else ''}": None}
        subject = f"{plot.x_title.partition(' (')[0]} " if all(map(_is_digits, names)) else ""
        notes.append(f"{subject}{', '.join(names)} ({reason})")
    return [f"left out: {'; '.join(notes)}"] if notes else []


def printable(text: str) -> str:
    """Return the text without characters that no picture can show (control characters, line breaks), shortened if it is too
    long."""
    return "".join(character if character.isprintable() else " " for character in text[:_MAX_TEXT])


def _thin(rows: list[Mapping[str, Any]], limit: int) -> list[Mapping[str, Any]]:
    """Return at most `limit` of the rows, evenly spaced."""
    return rows if len(rows) <= limit else [rows[index * len(rows) // limit] for index in range(limit)]


def find_rows(plot: Plot, metrics: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows that a plot shows, or an empty list if the metrics do not contain them."""
    value: Any = {"metrics": metrics}
    for step in plot.rows.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return [row if isinstance(row, Mapping) else {} for row in value] if isinstance(value, list) else []


def _groups(plot: Plot, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Group the row indexes by the values of the plot's `by`, in row order; without `by`, return one group."""
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(printable(str(row.get(plot.by))) if plot.by else "", []).append(index)
    return groups


def _has_words(plot: Plot, rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(isinstance(row.get(plot.x), str) and _number(row.get(plot.x), False) is None for row in rows)


def _points(
    plot: Plot,
    rows: Sequence[Mapping[str, Any]],
    places: Sequence[float | None],
    key: str,
    ends: tuple[str | None, str | None] = (None, None),
) -> list[PlotPoint]:
    """Return a point for each row that has a number under `key`. The point's spread is between the row's values under `ends`,
    if it has both."""
    points = []
    for row, x in zip(rows, places, strict=True):
        y, low, high = (_scale(plot, row.get(name)) if name else None for name in (key, *ends))
        if x is not None and y is not None:
            points.append(PlotPoint(x=x, y=y, spread=(low, high) if low is not None and high is not None else None))
    return points


def _scale(plot: Plot, value: object) -> float | None:
    """Return the value as a number in the unit of the y axis, or None if the axis cannot show it."""
    number = _number(value, plot.log_y)
    return None if number is None else _number(number * plot.y_scale, plot.log_y)


def _ideal(
    plot: Plot, rows: Sequence[Mapping[str, Any]], places: Sequence[float | None], series: Sequence[Sequence[PlotPoint]]
) -> list[PlotPoint]:
    if plot.ideal_key:
        points = _points(plot, rows, places, plot.ideal_key)
        return [*{point.x: point for point in points}.values()]  # rows of several lines may have the same x
    first = next((points[0] for points in series if points), None)
    if not plot.ideal or first is None or not first.x:
        return []
    positions = sorted({point.x for points in series for point in points})
    return [PlotPoint(x=x, y=first.y * x / first.x) for x in positions]


def _number(value: object, log: bool) -> float | None:
    """Return the value as a number that its axis can show, or None if it is not such a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not abs(number) <= _MAX_NUMBER:  # this excludes NaN as well
        return None
    return number if not log or number >= 1 / _MAX_NUMBER else None
