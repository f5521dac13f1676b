"""Kinds of checks. Each kind is one entry of `_KINDS`.

A kind is one way to compare a value with the operand in the manifest. Manifests, their JSON Schema, the lint, verdicts and
screens look kinds up here, so a new kind needs only a new entry.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from gpucourse.model.fields import Scalar, is_evidence, is_number


@dataclass(frozen=True, kw_only=True)
class CheckKind:
    """One kind of check.

    `name`: its key in a manifest.
    `words`: the text before the operand ("at least").
    `operand`: the type of the operand, which pydantic checks. A path into the evidence is replaced by its value before the
    comparison.
    `holds`: compares the value with the operand, within the tolerance. It returns None if the two cannot be compared; the check
    then does not pass. It is not called for numbers that are not finite: these always fail.
    `tolerance`: whether a check of this kind may have a tolerance.
    `find_objection`: returns any other reason to reject an operand, or None.
    """

    name: str
    words: str
    description: str
    holds: Callable[[object, object, float], bool | None]
    operand: Any = Scalar
    find_objection: Callable[[Scalar], str | None] = lambda _operand: None
    tolerance: bool = False


def number_kind(name: str, words: str, description: str, compare: Callable[[float, float], bool]) -> CheckKind:
    """Return a kind that compares two numbers. The operand is a number or a path to a number."""

    def holds(observed: object, expected: object, _tolerance: float) -> bool | None:
        return compare(observed, expected) if is_number(observed) and is_number(expected) else None

    def find_objection(operand: Scalar) -> str | None:
        path = not isinstance(operand, str) or is_evidence(operand)
        return None if path else f"'{operand}' is neither a number nor a path such as plan.world_size"

    return CheckKind(
        name=name, words=words, description=description, holds=holds, operand=int | float | str, find_objection=find_objection
    )


def _equal(observed: object, expected: object, tolerance: float) -> bool | None:
    if is_number(observed) and is_number(expected):
        return abs(observed - expected) <= tolerance
    if type(observed) is type(expected) and isinstance(observed, (str, bool)):
        return observed == expected
    return None


_KINDS = (
    number_kind("above", "above", "the value is larger than this number", operator.gt),
    number_kind("at_least", "at least", "the value is this number or larger", operator.ge),
    number_kind("at_most", "at most", "the value is this number or smaller", operator.le),
    number_kind("below", "below", "the value is smaller than this number", operator.lt),
    CheckKind(
        name="equals",
        words="",
        description="the value is this, or differs by at most the tolerance",
        holds=_equal,
        tolerance=True,
    ),
)


@cache
def check_kinds() -> dict[str, CheckKind]:
    """Return all kinds by their names. All callers share this one dictionary, so a kind that is added to it is available
    everywhere."""
    return {kind.name: kind for kind in _KINDS}
