"""Comparison of a run with its repetition. Exact values must agree within their tolerance, and times within a factor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gpucourse.grading.checks import format_value
from gpucourse.grading.values import Unreadable, read
from gpucourse.model.check import Check
from gpucourse.model.fields import is_number
from gpucourse.model.manifest import Exercise

RepeatVerdict = Literal["agrees", "differs", "time"]
"""`time` means a time or a rate, which differs on every computer. It is reported but does not count."""

MAGNITUDE = 10.0
"""Times that differ by more than this factor get a note."""
_TIMES = ("_s", "_ms", "_us", "_ns", "_gbps", "_tflops", "_gflops", "per_s", "speedup", "efficiency_percent")
_GRAIN = 1e-9  # relative: the rounding of binary fractions


@dataclass(frozen=True, kw_only=True)
class RepeatedFigure:
    """One value of a run in the bundle, and the same value of its rerun, both as text. `note` is a remark for the reader."""

    value: str
    bundle: str
    again: str
    verdict: RepeatVerdict
    note: str = ""


def compare_figures(exercise: Exercise, bundle: Mapping[str, object], rerun: Mapping[str, object]) -> Iterator[RepeatedFigure]:
    """Yield each value that can be compared between two runs. Both mappings contain metrics, plan and run, as for checks."""
    tolerances = {check.value: (check.tolerance, 0.0) for check in exercise.checks if _is_exact(check)}
    tolerances |= {item.value: (0.0, item.tolerance_percent / 100) for item in exercise.same_again}
    for expression, (absolute, relative) in tolerances.items():
        before, after = _read(expression, bundle), _read(expression, rerun)
        same = _is_same(before, after, absolute, relative)
        yield RepeatedFigure(value=expression, bundle=_say(before), again=_say(after), verdict="agrees" if same else "differs")
    for question in exercise.questions:
        if question.value is None or question.value in tolerances or not _is_time(str(question.value)):
            continue
        before, after = _read(str(question.value), bundle), _read(str(question.value), rerun)
        if is_number(before) and is_number(after) and min(abs(before), abs(after)) > 0:
            factor = max(abs(before / after), abs(after / before))
            note = f"differs by a factor of {factor:.0f}" if factor > MAGNITUDE else ""
            yield RepeatedFigure(value=str(question.value), bundle=_say(before), again=_say(after), verdict="time", note=note)


def _is_exact(check: object) -> bool:
    """Return whether a check requires one exact value: it uses `equals` and needs no GPU."""
    return isinstance(check, Check) and check.evidence == "logic" and check.comparison[0].name == "equals"


def _is_time(expression: str) -> bool:
    return expression.rstrip(")").endswith(_TIMES)


def _read(expression: str, evidence: Mapping[str, object]) -> object:
    try:
        return read(expression, evidence)
    except Unreadable as error:
        return error


def _is_same(before: object, after: object, absolute: float, relative: float) -> bool:
    if isinstance(before, Unreadable) or isinstance(after, Unreadable):
        return isinstance(before, Unreadable) and isinstance(after, Unreadable)
    if isinstance(before, list) and isinstance(after, list):
        same = (_is_same(left, right, absolute, relative) for left, right in zip(before, after, strict=False))
        return len(before) == len(after) and all(same)
    if not (is_number(before) and is_number(after)):
        return type(before) is type(after) and before == after
    if not (math.isfinite(before) and math.isfinite(after)):
        return str(before) == str(after)
    margin = absolute + relative * max(abs(before), abs(after))
    return abs(before - after) <= margin + _GRAIN * max(abs(before), abs(after))


def _say(value: object) -> str:
    if isinstance(value, Unreadable):
        return "missing"
    if isinstance(value, list):
        values = ", ".join(format_value(item, "") for item in value[:4])
        return f"{values}, ... ({len(value)} values)" if len(value) > 4 else values
    return format_value(value, "")[:60]
