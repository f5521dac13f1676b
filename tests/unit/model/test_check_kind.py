"""A kind of check is one file: manifests, schema, lint, verdicts and screens follow from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from gpucourse.course.catalog import Catalog, load
from gpucourse.course.lint import lint
from gpucourse.course.schema import schema, schema_text, write_schema
from gpucourse.errors import GpucourseError
from gpucourse.grading.checks import evaluate
from gpucourse.model.check import Check
from gpucourse.model.check_kind import check_kinds
from gpucourse.ui.views.course import exercise as view_of_exercise
from tests.unit.course.conftest import SmallCourse
from tests.unit.model.multiple_of import KIND

EVEN = "- {id: even, title: Its springs pair, value: count(metrics.springs.litres), multiple_of: 2, hint: Count again.}"
CHECK = {"id": "c", "title": "t", "value": "metrics.v", "hint": "h"}


@pytest.fixture
def multiple_of() -> Iterator[None]:
    check_kinds()[KIND.name] = KIND
    schema_text.cache_clear()
    yield
    del check_kinds()[KIND.name]
    schema_text.cache_clear()


def course_with(root: Path, check: str) -> Catalog:
    course = SmallCourse(root)
    course.change("    deliverables:", f"      {check}\n    deliverables:")
    write_schema(course.folders.modules)
    return load(course.folders)


def complaints(check: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    try:
        Check.model_validate(check)
    except ValidationError as error:
        return [(detail["loc"], detail["msg"]) for detail in error.errors()]
    return []


@pytest.mark.usefixtures("multiple_of")
@pytest.mark.parametrize(("springs", "verdict"), [(2, "passed"), (3, "failed")])
def test_check_kind_is_one_file(tmp_path: Path, springs: int, verdict: str) -> None:
    catalog = course_with(tmp_path, EVEN)
    assert lint(catalog) == []
    module, exercise = catalog.exercise("7.1")
    metrics = {"wet": True, "springs": [{"litres": 1.0}] * springs}
    result = evaluate(exercise, metrics, {"world_size": 1, "nodes": 1}, {}, mode="local")
    (even,) = [check for check in result.checks if check.id == "even"]
    assert (even.verdict, even.observed, even.expected) == (verdict, str(springs), "a multiple of 2")
    assert "a multiple of 2" in str(view_of_exercise(module, exercise))
    properties = schema()["$defs"]["Check"]["properties"]
    assert properties["multiple_of"]["description"] == "the value is a multiple of this number"


def test_check_kind_without_its_file_is_refused(tmp_path: Path) -> None:
    catalog = course_with(tmp_path, EVEN)
    with pytest.raises(GpucourseError) as refused:
        catalog.exercise("7.1")
    assert "multiple_of" in str(refused.value) + str(lint(catalog))


@pytest.mark.parametrize(
    ("changed", "place", "said"),
    [
        ({}, (), "needs exactly one of .*equals.*; has none"),
        ({"equals": 1, "below": 2}, (), "needs exactly one of .*; has "),
        ({"below": "fast"}, (), "below: 'fast' is neither a number nor a path"),
        ({"at_most": float("inf")}, (), "at_most: inf is not a finite number"),
        ({"at_least": 1, "tolerance": 0.1}, (), "tolerance belongs to equals, not to at_least"),
        ({"above": [1]}, ("above", "int"), "valid integer"),
    ],
)
def test_check_with_a_fault_names_it(changed: dict[str, Any], place: tuple[str, ...], said: str) -> None:
    complaint_list = complaints(CHECK | changed)
    assert any(where == place and re.search(said, reason) for where, reason in complaint_list), complaint_list


@pytest.mark.parametrize("changed", [{"equals": 1}, {"below": 2, "equals": 1}, {}, {"at_least": [1]}, {"above": True}])
def test_schema_of_a_check_refuses_what_the_program_refuses(changed: dict[str, Any]) -> None:
    whole = schema()
    judge = Draft202012Validator({"$ref": "#/$defs/Check", "$defs": whole["$defs"]})
    assert judge.is_valid(CHECK | changed) == (complaints(CHECK | changed) == [])
