"""Turn rows of the metrics into points to draw. Values that cannot be drawn are counted, and the picture says how many there
are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpucourse.errors import MissingError

if TYPE_CHECKING:  # this imports pydantic, which a process that only draws does not need
    from gpucourse.model.manifest import Plot


MAX_ROWS = 2000
"""The maximum number of rows in a picture: more would not fit into its columns of pixels."""

MAX_WORDS, MAX_LINES = 100, 24
_MAX_TEXT = 200
_MAX_NUMBER = 1e100  # an axis needs room around its values, and a logarithmic axis computes their powers


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
    left_out = more_lines = 0
    for line in plot.series:
        for name, indexes in _groups(plot, rows).items():
            if len(series) == MAX_LINES:
                more_lines += 1
                continue
            group_rows, some_places = [rows[index] for index in indexes], [places[index] for index in indexes]
            series.append(_points(group_rows, some_places, line.key, (line.low, line.high), log_y=plot.log_y))
            labels.append(f"{line.label}: {name or 'none'}" if plot.by else line.label)
            left_out += len(group_rows) - len(series[-1])
    if not any(series):
        keys = ", ".join(line.key for line in plot.series)
        raise MissingError(
            f"no row of {plot.rows} has a number for {keys}",
            hint="look at the run's metrics.json: the script writes null for what it did not measure",
        )
    reason = "zero, missing, or not finite" if plot.log_y else "missing, or not finite"
    notes = [f"{left_out} value{'s' if left_out > 1 else ''} left out: {reason}"] if left_out else []
    notes += [f"{len(rows):,} of {len(all_rows):,} rows drawn"] if len(rows) < len(all_rows) else []
    notes += [f"{more_lines} more lines not drawn"] if more_lines else []
    whole = not words and all(place is not None and place.is_integer() for place in places)
    ideal = _ideal(plot, rows, places, series)
    return Drawable(series=series, labels=labels, ideal=ideal, words=words, whole_x=whole, notes=notes)


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
    rows: Sequence[Mapping[str, Any]],
    places: Sequence[float | None],
    key: str,
    ends: tuple[str | None, str | None] = (None, None),
    *,
    log_y: bool,
) -> list[PlotPoint]:
    """Return a point for each row that has a number under `key`. The point's spread is between the row's values under `ends`,
    if it has both."""
    points = []
    for row, x in zip(rows, places, strict=True):
        y = _number(row.get(key), log_y)
        if x is None or y is None:
            continue
        low, high = (_number(row.get(end), log_y) if end else None for end in ends)
        points.append(PlotPoint(x=x, y=y, spread=(low, high) if low is not None and high is not None else None))
    return points


def _ideal(
    plot: Plot, rows: Sequence[Mapping[str, Any]], places: Sequence[float | None], series: Sequence[Sequence[PlotPoint]]
) -> list[PlotPoint]:
    if plot.ideal_key:
        points = _points(rows, places, plot.ideal_key, log_y=plot.log_y)
        return [*{point.x: point for point in points}.values()]  # rows of several lines may have the same x
    first = next((points[0] for points in series if points), None)
    if not plot.ideal or first is None or not first.x:
        return []
    positions = sorted({point.x for points in series for point in points})
    return [PlotPoint(x=x, y=first.y * x / first.x) for x in positions]


def _number(value: object, log: bool) -> float | None:
    """Return the value as a number that its axis can show, or None if there is no such number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not abs(number) <= _MAX_NUMBER:  # this excludes NaN as well
        return None
    return number if not log or number >= 1 / _MAX_NUMBER else None
