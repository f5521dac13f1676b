"""Comparison of a run with its repetition. Exact values must agree within their tolerance. Times are only reported, with a
note if they differ by a large factor."""

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
_GRAIN = 1e-9  # relative: the rounding of binary fractions does not count


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
        bundle_value, rerun_value = _read(expression, bundle), _read(expression, rerun)
        same = _is_same(bundle_value, rerun_value, absolute, relative)
        yield RepeatedFigure(
            value=expression, bundle=_say(bundle_value), again=_say(rerun_value), verdict="agrees" if same else "differs"
        )
    for question in exercise.questions:
        if question.value is None or question.value in tolerances or not _is_time(str(question.value)):
            continue
        bundle_value, rerun_value = _read(str(question.value), bundle), _read(str(question.value), rerun)
        if is_number(bundle_value) and is_number(rerun_value) and min(abs(bundle_value), abs(rerun_value)) > 0:
            factor = max(abs(bundle_value / rerun_value), abs(rerun_value / bundle_value))
            note = f"differs by a factor of {factor:.0f}" if factor > MAGNITUDE else ""
            yield RepeatedFigure(
                value=str(question.value), bundle=_say(bundle_value), again=_say(rerun_value), verdict="time", note=note
            )


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


def _is_same(bundle_value: object, rerun_value: object, absolute: float, relative: float) -> bool:
    if isinstance(bundle_value, Unreadable) or isinstance(rerun_value, Unreadable):
        return isinstance(bundle_value, Unreadable) and isinstance(rerun_value, Unreadable)
    if isinstance(bundle_value, list) and isinstance(rerun_value, list):
        same = (_is_same(left, right, absolute, relative) for left, right in zip(bundle_value, rerun_value, strict=False))
        return len(bundle_value) == len(rerun_value) and all(same)
    if not (is_number(bundle_value) and is_number(rerun_value)):
        return type(bundle_value) is type(rerun_value) and bundle_value == rerun_value
    if not (math.isfinite(bundle_value) and math.isfinite(rerun_value)):
        return str(bundle_value) == str(rerun_value)
    margin = absolute + relative * max(abs(bundle_value), abs(rerun_value))
    return abs(bundle_value - rerun_value) <= margin + _GRAIN * max(abs(bundle_value), abs(rerun_value))


def _say(value: object) -> str:
    if isinstance(value, Unreadable):
        return "missing"
    if isinstance(value, list):
        values = ", ".join(format_value(item, "") for item in value[:4])
        return f"{values}, ... ({len(value)} values)" if len(value) > 4 else values
    return format_value(value, "")[:60]
