"""Runs of one exercise side by side: every value, and its difference from the value of the first run."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpucourse.learning.pages.run_content import RunContent
from gpucourse.model.manifest import MetricsColumn, MetricsTable
from gpucourse.outside.names import printable
from gpucourse.report import grids

MAX_RUNS = 8
"""The maximum number of runs that are shown side by side; the newest are used."""

MAX_ROWS = 200
"""The maximum number of rows that are compared in one table; the first are used."""

NOISE = "≈ "
"""Marks a difference that may be noise, because the spreads of both values overlap, or the spreads of the times from which they
were computed."""

UNKNOWN = "? "
"""Marks a difference between measured values with an unknown spread."""

MEASURED = "measured"
"""The group for the measurements of a learner's own script."""

SAME_FACTOR = 0.005
"""The largest relative difference between two factors that are equal except for rounding."""

MAX_COUNT = 1e15
"""The largest count from which a rate may be computed."""

_IDENTITY = re.compile(r"(^|_)(pid|uid|rank|job|port)$")  # the key of a column with numbers that only name something
MAX_TEXT = 120  # the maximum number of characters of a compared text


@dataclass(frozen=True)
class Spread:
    """A median and its spread within one run: the 20th and 80th percentiles."""

    median: float
    low: float
    high: float

    def overlaps(self, other: Spread) -> bool:
        """Return whether the difference between two medians may be noise."""
        return self.low <= other.high and other.low <= self.high

    def divide(self, other: Spread) -> Spread:
        """Return the spread of this time divided by another time, as for a speed-up. All numbers must be positive."""
        return Spread(self.median / other.median, self.low / other.high, self.high / other.low)

    def invert(self) -> Spread:
        """Return the spread of the inverse, as for a rate."""
        return Spread(1 / self.median, 1 / self.high, 1 / self.low)

    def scale(self, median: float) -> Spread:
        """Return the spread of a number that is proportional to this one and has the median `median`."""
        factor = median / self.median
        return Spread(median, self.low * factor, self.high * factor)


@dataclass(frozen=True, kw_only=True)
class ComparedValue:
    """A value of one run as text, and also as a number if it is one.

    `measured`: whether the number may be different in the next run. Settings and counts are not measured.
    `times`: the spreads of the times from which the value may be computed: first the time of its row, then the times of its
    table.
    `counts`: the whole numbers of its row, by key. A rate is computed from a time and a count.
    """

    text: str
    number: float | None = None
    measured: bool = False
    times: tuple[Spread, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)

    def find_mark(self, base: ComparedValue) -> str:
        """Return the mark for the difference from a base: NOISE, UNKNOWN, or an empty string. It is empty if the difference
        exceeds the spreads, or if the value is not a measurement."""
        if not self.measured:
            return ""
        spreads = self._find_spreads(base)
        if spreads is None:
            return UNKNOWN
        return NOISE if spreads[0].overlaps(spreads[1]) else ""

    def _find_spreads(self, base: ComparedValue) -> tuple[Spread, Spread] | None:
        """Return the spreads of the base and of this value if both were computed from times, otherwise None. A value counts as
        computed from a time if it changed by the same factor as the time, as the inverse of the time, or as the product of one
        of these and a count."""
        if not self.number or not base.number:
            return None
        factor = self.number / base.number
        ratios = {count / base.counts[key] for key, count in self.counts.items() if count and base.counts.get(key)}
        for ratio in (1.0, *sorted(ratios)):
            for base_time, own_time in zip(base.times, self.times, strict=False):
                for divisor, dividend in ((base_time, own_time), (base_time.invert(), own_time.invert())):
                    if math.isclose(factor, ratio * dividend.median / divisor.median, rel_tol=SAME_FACTOR):
                        return divisor.scale(base.number), dividend.scale(self.number)
        return None


@dataclass(frozen=True, kw_only=True)
class ComparedRow:
    """One value in all runs. For a run that lacks the value, it is None."""

    title: str
    values: tuple[ComparedValue | None, ...]

    @property
    def differs(self) -> bool:
        """Return whether the runs have different values."""
        return len({value.text if value else None for value in self.values}) > 1

    def list_differences(self) -> list[str]:
        """Return the difference of each value from the first, such as `+12 %`; an empty string if it is not known."""
        base = self.values[0]
        return [_tell_difference(base, value) for value in self.values]

    def list_marks(self) -> set[str]:
        """Return the marks of all measured numbers that differ from the first. The mark is empty if the difference exceeds the
        spreads."""
        base, *other_values = self.values
        numbers = [
            value
            for value in other_values
            if base and value and value.measured and value.number is not None and value.text != base.text
        ]
        return {value.find_mark(base) for value in numbers} if base and base.number is not None else set()


Values = dict[tuple[str, str], ComparedValue]
"""The values of one run. Each key is a pair: the group (how the run was started, a table, the checks) and the title."""


def list_values(content: RunContent) -> Values:
    """Return all values of a run that can be compared, in the order of display."""
    record, values = content.record, Values()
    values["started", "state"] = _text(record.shown_state)
    values["started", "nodes"] = _number(record.node_count)
    values["started", "ranks"] = _number(record.rank_count)
    values |= {("started", str(name)): _value(value) for name, value in record.parameters.items()}
    values |= {("started", f"--env {name}"): _text(value) for name, value in record.environment.items()}
    if record.torchrun:
        values["started", "--torchrun"] = _text(record.torchrun)
    values["environment", "device"] = _text(content.metrics.get("device") or "")
    for name, value in _list_environment(content.environment):
        values["environment", name] = _text(value)
    if content.exercise is None:  # a script of the learner: no manifest describes its numbers
        values |= {(MEASURED, name): _measure(value) for name, value in _list_scalars(content.metrics)}
    for table in content.exercise.tables if content.exercise else ():
        values |= {(table.title, name): value for name, value in list_cells(table, content.metrics, record.parameters)}
    for check in content.verdict.checks if content.verdict else ():
        verdict = check.verdict.replace("_", " ")
        values["checks", check.title] = _text(f"{verdict}: {check.observed.removeprefix(f'{verdict}: ')}")
    return values


def _list_scalars(metrics: Mapping[str, Any]) -> Iterator[tuple[str, int | float | str]]:
    """Yield the single values under a script's own keys, each with its key."""
    for name, value in metrics.items():
        if isinstance(value, int | float | str) and name not in {"mode", "schema", "device"}:
            yield printable(name, MAX_TEXT), value


def put_side_by_side(runs: Sequence[Values]) -> dict[str, list[ComparedRow]]:
    """Return the rows of each group, each row with its values in all these runs. Rows keep the order of the first run that has
    them."""
    keys = dict.fromkeys(key for values in runs for key in values)
    groups: dict[str, list[ComparedRow]] = {}
    for group, title in keys:
        row = ComparedRow(title=title, values=tuple(values.get((group, title)) for values in runs))
        groups.setdefault(group, []).append(row)
    return groups


def _list_environment(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    facts = next(iter(nodes.values()), {})
    yield from ((name, str(facts[name])) for name in ("cpu", "cores", "python", "os") if facts.get(name))
    packages = facts.get("packages")
    yield from ((str(name), str(version)) for name, version in (packages.items() if isinstance(packages, dict) else ()))


def list_cells(
    table: MetricsTable, metrics: Mapping[str, Any], settings: Collection[str] = ()
) -> Iterator[tuple[str, ComparedValue]]:
    """Yield the values in a run's table, each named by its row and column. `settings`: the keys of columns that are not
    measured."""
    first, *other_columns = table.columns
    rows = grids.rows_of(table.rows, metrics)[:MAX_ROWS]
    name_columns = _choose_name_columns(table.columns, rows) if other_columns else []
    other_columns = [column for column in other_columns if column not in name_columns]
    first_time: Spread | None = None
    names: Counter[str] = Counter()
    for number, row in enumerate(rows, 1):
        name = ", ".join(_name_cell(column, row) for column in name_columns) or f"row {number}"
        names[name] += 1
        name = f"{name} ({names[name]})" if names[name] > 1 else name
        time = _read_time(row)
        first_time = first_time or time
        times = (time, first_time.divide(time)) if time and first_time else ()
        counts = {key: float(value) for key, value in row.items() if type(value) is int and abs(value) < MAX_COUNT}
        for column in other_columns or [first]:
            if row.get(column.key) is None:
                continue
            if _IDENTITY.search(column.key):
                yield f"{name} · {column.title}", _text(grids.number(row[column.key], 0))
                continue
            value = (_value if column.key in settings else _measure)(row[column.key], column.digits)
            yield f"{name} · {column.title}", replace(value, times=times, counts=counts)


def _choose_name_columns(columns: Sequence[MetricsColumn], rows: Sequence[Mapping[str, Any]]) -> list[MetricsColumn]:
    """Return the columns that name the rows of a table: the first, and as many further columns as are needed for each row to
    have a unique name. These have texts or, before the first column with fractions, whole numbers such as bytes."""
    first, *other_columns = columns
    chosen, kinds = [first], {str, int}
    for column in other_columns:
        if len({tuple(_name_cell(part, row) for part in chosen) for row in rows}) == len(rows):
            break
        values = [row.get(column.key) for row in rows]
        if float in map(type, values):
            kinds = {str}
        if {type(value) for value in values} <= kinds and len(set(values)) > 1:
            chosen.append(column)
    return chosen


def _name_cell(column: MetricsColumn, row: Mapping[str, Any]) -> str:
    """Return the value of a row in this column as a name: a text, or a number after the column's title."""
    value = row.get(column.key)
    is_number = isinstance(value, int | float)
    name = printable(f"{value:,}" if is_number and not isinstance(value, bool) else str(value), MAX_TEXT)
    return f"{column.title} {name}" if is_number else name


def _read_time(row: Mapping[str, Any]) -> Spread | None:
    """Return the time in a row with its spread, such as `median_ms` with `p20_ms` and `p80_ms`, or None without such a time."""
    for key in row:
        name, _, unit = key.partition("_")
        spread = [row.get(f"{part}_{unit}") for part in ("median", "p20", "p80")]
        numbers = [float(number) for number in spread if isinstance(number, int | float) and 1e-99 < number < 1e99]
        if name == "median" and len(numbers) == 3:
            return Spread(*numbers)
    return None


def _measure(value: object, digits: int | None = None) -> ComparedValue:
    """Return a value that a run measured. A whole number is a count, so the next run will have the same number."""
    return replace(_value(value, digits), measured=isinstance(value, float))


def _value(value: object, digits: int | None = None) -> ComparedValue:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _text(grids.number(value, digits))
    return _number(value, digits)


def _number(value: float, digits: int | None = None) -> ComparedValue:
    text = grids.number(value, digits)
    try:
        number = float(value)
    except OverflowError:
        return _text(text)
    return ComparedValue(text=text, number=number if math.isfinite(number) else None)


def _text(value: object) -> ComparedValue:
    return ComparedValue(text=printable(str(value), MAX_TEXT))


def _tell_difference(base: ComparedValue | None, value: ComparedValue | None) -> str:
    if base is None or value is None or base.number is None or value.number is None or base.number == value.number:
        return ""
    if base.number == 0:
        return f"{value.find_mark(base)}{_round(value.number)}"
    return f"{value.find_mark(base)}{_round((value.number - base.number) / abs(base.number) * 100)} %"


def _round(value: float) -> str:
    """Format a number with its sign and three digits."""
    return f"{float(f'{value:.3g}'):+,g}"
