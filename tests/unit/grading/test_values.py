"""The closed grammar for values: the values that it reads, and its messages about missing ones."""

from __future__ import annotations

import math

import pytest

from gpucourse.grading.values import Unreadable, read

EVIDENCE: dict[str, object] = {
    "metrics": {
        "speedup": 1.5,
        "name": "gloo",
        "good": True,
        "nothing": None,
        "rows": [{"ms": 3.0, "ok": True}, {"ms": 1.0, "ok": False}, {"ms": 2.5, "ok": True}],
        "nested": [{"inner": [{"v": 1}, {"v": 2}]}, {"inner": [{"v": 3}]}],
        "counts": [4, 5, 6],
        "empty": [],
        "spoiled": [1.0, math.nan, 3.0],
        "as_text": ["1", "nan"],
        "words": ["a", "b"],
        "nan": "nan",
        "endless": "-inf",
        "holes": [1.0, None],
        "ragged": [{"ms": 1.0}, {}],
        "big": [2**70, 1],
    },
    "plan": {"world_size": 2},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("metrics.speedup", 1.5),
        ("metrics.nothing", None),
        ("plan.world_size", 2),
        ("metrics.rows.ms", [3.0, 1.0, 2.5]),
        ("metrics.rows.1.ms", 1.0),
        ("metrics.nested.inner.v", [1, 2, 3]),
        ("metrics.nested.1.inner.0.v", 3),
        ("min(metrics.rows.ms)", 1.0),
        ("max(metrics.rows.ms)", 3.0),
        ("median(metrics.rows.ms)", 2.5),
        ("sum(metrics.counts)", 15),
        ("sum(metrics.big)", 2**70 + 1),
        ("last(metrics.rows.ms)", 2.5),
        ("count(metrics.rows)", 3),
        ("count(metrics.nested.inner.v)", 3),
        ("count(metrics.empty)", 0),
        ("metrics.endless", -math.inf),
    ],
)
def test_values_read_by_an_expression(expression: str, value: object) -> None:
    result = read(expression, EVIDENCE)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize("expression", ["min(metrics.spoiled)", "max(metrics.spoiled)", "sum(metrics.spoiled)", "metrics.nan"])
def test_read_never_hides_not_a_number(expression: str) -> None:
    result = read(expression, EVIDENCE)
    assert isinstance(result, float)
    assert math.isnan(result)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("metrics.missing", "metrics.missing is missing: metrics has no missing"),
        ("run.state", "run.state is missing"),
        ("metrics.speedup.more", "metrics.speedup.more is missing: metrics.speedup is 1.5"),
        ("metrics.nothing.more", "metrics.nothing.more is missing: metrics.nothing is null (not measured)"),
        ("metrics.rows.9.ms", "metrics.rows has 3 elements, none with number 9"),
        ("metrics.ragged.ms", "metrics.ragged.ms is missing: metrics.ragged has no ms"),
        ("min(metrics.speedup)", "metrics.speedup is one value, not a list, so there is no min of it"),
        ("max(metrics.empty)", "metrics.empty is an empty list, so there is no max of it"),
        ("max(metrics.words)", "metrics.words contains the text 'a', so there is no max of it"),
        ("max(metrics.rows.ok)", "metrics.rows.ok contains true, so there is no max of it"),
        ("sum(metrics.holes)", "metrics.holes contains null (not measured), so there is no sum of it"),
        ("sum(metrics.rows)", "metrics.rows contains a mapping, so there is no sum of it"),
        ("__import__('os')", "'__import__('os')' is not a path"),
        ("metrics.__class__", "metrics.__class__ is missing: metrics has no __class__"),
    ],
)
def test_read_names_the_value_that_is_missing(expression: str, message: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(expression, EVIDENCE)
    assert str(caught.value) == message
