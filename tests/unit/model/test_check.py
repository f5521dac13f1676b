"""A check of a manifest has exactly one comparison, and the description of what ranks print has one form."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from gpucourse.course.schema import schema
from gpucourse.model.check import Check

CHECK = {"id": "c", "title": "t", "value": "metrics.v", "hint": "h"}


def complaints(check: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    try:
        Check.model_validate(check)
    except ValidationError as error:
        return [(detail["loc"], detail["msg"]) for detail in error.errors()]
    return []


@pytest.mark.parametrize(
    ("changes", "place", "message"),
    [
        ({}, (), "needs exactly one of .*equals.*; has none"),
        ({"equals": 1, "below": 2}, (), "needs exactly one of .*; has "),
        ({"below": "fast"}, (), "below: 'fast' is neither a number nor a path"),
        ({"at_most": float("inf")}, (), "at_most: inf is not a finite number"),
        ({"at_least": 1, "tolerance": 0.1}, (), "tolerance belongs to equals, not to at_least"),
        ({"above": [1]}, ("above", "int"), "valid integer"),
    ],
)
def test_check_with_a_fault_names_it(changes: dict[str, Any], place: tuple[str, ...], message: str) -> None:
    problems = complaints(CHECK | changes)
    assert any(location == place and re.search(message, reason) for location, reason in problems), problems


@pytest.mark.parametrize("changes", [{"equals": 1}, {"below": 2, "equals": 1}, {}, {"at_least": [1]}, {"above": True}])
def test_check_that_the_program_refuses_is_refused_by_its_schema(changes: dict[str, Any]) -> None:
    whole = schema()
    judge = Draft202012Validator({"$ref": "#/$defs/Check", "$defs": whole["$defs"]})
    assert judge.is_valid(CHECK | changes) == (complaints(CHECK | changes) == [])
