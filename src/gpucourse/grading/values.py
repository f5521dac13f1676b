"""Read one value from the evidence of a run, with a closed grammar. Nothing is ever evaluated.

metrics.speedup              a value
metrics.rows.error           through a list: the value of every element
metrics.rows.0.error         a number picks one element
max(metrics.rows.error)      min, max, median, sum and last reduce many values to one; count returns how many there are
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpucourse.model.fields import EXPRESSION, is_number

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}

_MAX_BITS = 1000  # bits: larger whole numbers are near or beyond the largest float, and count as infinite


class Unreadable(Exception):
    """The exception for an expression whose value the evidence does not contain. The message says what is missing and where."""


def read(expression: str, evidence: Mapping[str, object]) -> object:
    """Return the value of an expression: a number, text, true, false or None, or a list if the path leads to several values.

    The words nan and inf are returned as floats: scripts write them because JSON has no such numbers. Raises Unreadable.
    """
    match = EXPRESSION.match(expression)
    if not match:
        raise Unreadable(f"'{expression}' is not a path")
    reduce, path = match["reduce"], match["path"]
    value = _walk(evidence, path.split("."), path)
    if reduce is None:
        return value
    if not isinstance(value, list):
        raise Unreadable(f"{path} is one value, not a list, so there is no {reduce} of it")
    if reduce == "count":
        return len(value)
    if not value:
        raise Unreadable(f"{path} is an empty list, so there is no {reduce} of it")
    return value[-1] if reduce == "last" else _reduce(reduce, value, path)


def _walk(value: object, steps: Sequence[str], path: str, path_so_far: str = "") -> Any:
    for index, step in enumerate(steps):
        if isinstance(value, list):
            if not step.isdigit():
                return _flat([_walk(item, steps[index:], path, path_so_far) for item in value])
            if int(step) >= len(value):
                raise Unreadable(f"{path_so_far} has {len(value)} elements, none with number {step}")
            value = value[int(step)]
        elif isinstance(value, Mapping):
            if step not in value:
                raise Unreadable(f"{path} is missing" + (f": {path_so_far} has no {step}" if path_so_far else ""))
            value = value[step]
        else:
            raise Unreadable(f"{path} is missing: {path_so_far} is {_kind(value)}")
        path_so_far = f"{path_so_far}.{step}" if path_so_far else step
    return _number(value)


def _flat(values: list[Any]) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        flat += value if isinstance(value, list) else [value]
    return flat


def _number(value: object) -> object:
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return math.inf if value > 0 else -math.inf
    if isinstance(value, str):
        return NOT_FINITE.get(value.strip().lower(), value)
    return [_number(item) for item in value] if isinstance(value, list) else value


_REDUCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "median": statistics.median,
    "sum": math.fsum,
}


def _reduce(reduce: str, values: list[Any], path: str) -> float:
    for value in values:
        if not is_number(value):
            raise Unreadable(f"{path} contains {_kind(value)}, so there is no {reduce} of it")
    if any(math.isnan(value) for value in values):
        return math.nan  # min and max would hide it
    if reduce == "sum" and all(isinstance(value, int) for value in values):
        return int(sum(values))
    return _REDUCTIONS[reduce](values)


def _kind(value: object) -> str:
    if value is None:
        return "null (not measured)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else str(value)
