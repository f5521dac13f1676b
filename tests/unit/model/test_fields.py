"""The values that a manifest accepts and refuses."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gpucourse.model import fields
from gpucourse.model.fields import Strict, is_evidence


@pytest.mark.parametrize(
    ("kind", "raw_value", "value"),
    [
        (fields.Seconds, "1h30m", 5400.0),
        (fields.Seconds, 90, 90.0),
        (fields.Bytes, "64 MiB", 64 << 20),
        (fields.ProcsPerNode, "gpu", "gpu"),
        (fields.ProcsPerNode, 64, 64),
        (fields.Expression, "max(metrics.rows.error)", "max(metrics.rows.error)"),
        (fields.NumberOrPath, 3, 3.0),
        (fields.Rows, "metrics.rows", "metrics.rows"),
        (fields.RelativePath, "solutions/a.py", "solutions/a.py"),
        (fields.ExerciseId, "B.3", "B.3"),
    ],
)
def test_fields_accept_what_a_person_writes(kind: Any, raw_value: object, value: object) -> None:
    assert TypeAdapter(kind).validate_python(raw_value) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (fields.Seconds, "soon"), (fields.Seconds, 0), (fields.Seconds, float("inf")),
        (fields.Bytes, "3 elephants"), (fields.Bytes, 0),
        (fields.ProcsPerNode, 65), (fields.ProcsPerNode, True), (fields.ProcsPerNode, 1.5),
        (fields.Expression, "exit()"), (fields.Expression, "metrics"), (fields.Expression, "max(metrics.a"),
        (fields.NumberOrPath, "three"),
        (fields.Rows, "plan.nodes"), (fields.Rows, "max(metrics.rows)"),
        (fields.RelativePath, "../a"), (fields.RelativePath, "/a"), (fields.RelativePath, "a//b"),
        (fields.RelativePath, "a\\b"),
        (fields.Text, " "), (fields.ExerciseId, "first"), (fields.Name, "Depth"), (fields.FileName, "../flow"),
    ],
)  # fmt: skip
def test_fields_refuse_what_has_another_form(kind: Any, value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(value)


def test_strict_makes_tuples_of_lists_and_converts_nothing_else() -> None:
    class Sample(Strict):
        names: tuple[str, ...] = ()
        count: int = 0

    assert Sample.model_validate({"names": ["a"]}).names == ("a",)
    for values in ({"count": "1"}, {"cuont": 1}):
        with pytest.raises(ValidationError):
            Sample.model_validate(values)


def test_is_evidence_needs_a_path_into_the_evidence() -> None:
    results = [is_evidence(text) for text in ("plan.world_size", "count(run.nodes)", "plan", "disk.size")]
    assert results == [True, True, False, False]
