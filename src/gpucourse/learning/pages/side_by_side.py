"""Runs of one exercise side by side: every value that at least one of them has, and how far each is from the first run's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpucourse.learning.pages.run_content import RunContent
from gpucourse.model.manifest import MetricsTable
from gpucourse.outside.names import printable
from gpucourse.report import grids

MOST_RUNS = 8
"""Runs that stand side by side: the newest."""

MOST_ROWS = 24
"""Rows of one table of a run: of a longer one the first."""

NOISE = "≈ "
"""Before a difference that may be noise: the spreads of both values overlap."""

LONGEST = 120  # characters of a text that is compared


@dataclass(frozen=True, kw_only=True)
class ComparedValue:
    """A value of one run as text, and as a number where it is one. `low` and `high` are how far it spread in its own run (the
    20th and 80th percentile around a median), where that was measured."""

    text: str
    number: float | None = None
    low: float | None = None
    high: float | None = None

    def overlaps(self, other: ComparedValue) -> bool:
        """Whether the spreads of both were measured and overlap: such a difference may be noise."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return False
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, kw_only=True)
class ComparedRow:
    """One value in all runs; None if a run does not have it."""

    title: str
    values: tuple[ComparedValue | None, ...]

    @property
    def differs(self) -> bool:
        """Whether not all runs have the same."""
        return len({value.text if value else None for value in self.values}) > 1

    def list_differences(self) -> list[str]:
        """How far each value is from the first one, such as `+12 %`; empty if that is not known."""
        base = self.values[0]
        return [_tell_difference(base, value) for value in self.values]


Values = dict[tuple[str, str], ComparedValue]
"""The values of one run by their group (how it was started, a table, the checks) and their title."""


def list_values(content: RunContent) -> Values:
    """Everything of a run that can be compared, in the order in which it is shown."""
    record, values = content.record, Values()
    values["started", "state"] = _text(record.state.replace("_", " "))
    values["started", "nodes"] = _number(len(record.nodes))
    values["started", "ranks"] = _number(record.world_size)
    values |= {("started", str(name)): _value(value) for name, value in record.parameters.items()}
    values |= {("started", f"--env {name}"): _text(value) for name, value in record.environment.items()}
    if record.torchrun:
        values["started", "--torchrun"] = _text(record.torchrun)
    values["environment", "device"] = _text(content.metrics.get("device") or "")
    for name, value in _list_environment(content.environment):
        values["environment", name] = _text(value)
    if content.exercise is None:  # a script of the learner's own: no manifest says what its numbers are
        values |= {("measured", name): _value(value) for name, value in _list_scalars(content.metrics)}
    for table in content.exercise.tables if content.exercise else ():
        values |= {(table.title, name): value for name, value in list_cells(table, content.metrics)}
    for check in content.verdict.checks if content.verdict else ():
        values["checks", check.title] = _text(f"{check.verdict.replace('_', ' ')}: {check.observed}")
    return values


def _list_scalars(metrics: Mapping[str, Any]) -> Iterator[tuple[str, int | float | str]]:
    """What a script wrote beside what this program knows: single values alone, each under its key."""
    for name, value in metrics.items():
        if isinstance(value, int | float | str) and name not in {"mode", "schema", "device"}:
            yield printable(name, LONGEST), value


def put_side_by_side(runs: Sequence[Values]) -> dict[str, list[ComparedRow]]:
    """The rows of each group over these runs, in the order of the first run that has them."""
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


def list_cells(table: MetricsTable, metrics: Mapping[str, Any]) -> Iterator[tuple[str, ComparedValue]]:
    """The values of a run's table, each named by its row and its column."""
    first, *others = table.columns
    for number, row in enumerate(grids.rows_of(table.rows, metrics)[:MOST_ROWS], 1):
        name = printable(str(row.get(first.key)), LONGEST) if others else f"row {number}"
        if others and isinstance(row.get(first.key), int | float):
            name = f"{first.title} {name}"
        for column in others or [first]:
            if row.get(column.key) is not None:
                yield f"{name} · {column.title}", _with_spread(_value(row[column.key], column.digits), column.key, row)


def _with_spread(value: ComparedValue, key: str, row: Mapping[str, Any]) -> ComparedValue:
    """The value with its percentiles: those of `median_ms` are `p20_ms` and `p80_ms` in the same row."""
    name, _, unit = key.partition("_")
    low, high = row.get(f"p20_{unit}"), row.get(f"p80_{unit}")
    if name != "median" or not isinstance(low, int | float) or not isinstance(high, int | float):
        return value
    return replace(value, low=float(low), high=float(high))


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
    return ComparedValue(text=printable(str(value), LONGEST))


def _tell_difference(base: ComparedValue | None, value: ComparedValue | None) -> str:
    if base is None or value is None or base.number is None or value.number is None or base.number == value.number:
        return ""
    if base.number == 0:
        return _round(value.number)
    noise = NOISE if value.overlaps(base) else ""
    return f"{noise}{_round((value.number - base.number) / abs(base.number) * 100)} %"


def _round(value: float) -> str:
    """With its sign, to three digits."""
    return f"{float(f'{value:.3g}'):+,g}"
