"""A kind of check is one entry: manifests, schema, lint, verdicts and screens follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.course.catalog import Catalog, load
from gpucourse.course.lint import lint
from gpucourse.course.schema import schema, schema_text, write_schema
from gpucourse.errors import GpucourseError
from gpucourse.grading.checks import evaluate
from gpucourse.model.check_kind import check_kinds, number_kind
from gpucourse.ui.views.course import exercise as view_of_exercise
from tests.unit.course.conftest import SmallCourse

KIND = number_kind(
    "multiple_of", "a multiple of", "the value is a multiple of this number", lambda value, base: value % base == 0
)
EVEN = "- {id: even, title: Its springs pair, value: count(metrics.springs.litres), multiple_of: 2, hint: Count again.}"


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


@pytest.mark.usefixtures("multiple_of")
@pytest.mark.parametrize(("springs", "verdict"), [(2, "passed"), (3, "failed")])
def test_check_kinds_of_one_entry_are_known_everywhere(tmp_path: Path, springs: int, verdict: str) -> None:
    catalog = course_with(tmp_path, EVEN)
    assert lint(catalog) == []
    module, exercise = catalog.exercise("7.1")
    metrics = {"wet": True, "springs": [{"litres": 1.0}] * springs}
    result = evaluate(exercise, metrics, {"world_size": 1, "nodes": 1}, {}, mode="local")
    (even_check,) = [check for check in result.checks if check.id == "even"]
    assert (even_check.verdict, even_check.observed, even_check.expected) == (verdict, str(springs), "a multiple of 2")
    assert "a multiple of 2" in str(view_of_exercise(module, exercise))
    properties = schema()["$defs"]["Check"]["properties"]
    assert properties["multiple_of"]["description"] == "the value is a multiple of this number"


def test_check_kind_without_its_entry_is_refused(tmp_path: Path) -> None:
    catalog = course_with(tmp_path, EVEN)
    with pytest.raises(GpucourseError) as error:
        catalog.exercise("7.1")
    assert "multiple_of" in str(error.value) + str(lint(catalog))


def test_number_kind_compares_numbers_and_paths_to_numbers() -> None:
    kind = number_kind("above", "above", "greater", lambda observed, expected: observed > expected)
    assert [kind.holds(2, 1, 0.0), kind.holds(1, 2, 0.0), kind.holds("2", 1, 0.0)] == [True, False, None]
    assert kind.find_objection("plan.world_size") is None
    assert kind.find_objection("many") == "'many' is neither a number nor a path such as plan.world_size"
