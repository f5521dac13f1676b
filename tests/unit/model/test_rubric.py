"""What earns points: rows of a module, each with its kinds of evidence."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gpucourse.model.rubric import Row, Rubric

ROW: dict[str, Any] = {"id": "a", "title": "t", "points": 1, "evidence": ["checks"]}
PART: dict[str, Any] = {"module": "1", "title": "t", "rows": [ROW]}


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ([PART | {"rows": [ROW, ROW]}], "the row a appears twice"),
        ([PART | {"rows": [ROW | {"points": 0}]}], "greater than 0"),
        ([PART | {"rows": [ROW | {"evidence": []}]}], "needs a kind of evidence"),
        ([PART | {"rows": [ROW | {"evidence": {"checks": 0}}]}], "with a weight above 0"),
        ([PART | {"rows": [ROW | {"evidence": ["checks", "checks"]}]}], "a kind of evidence appears twice"),
        ([PART | {"rows": [ROW | {"exercises": ["2.1"]}]}], "row a: 2.1 is not an exercise of module 1"),
        ([PART, PART], "module 1 has two parts"),
    ],
)
def test_rubric_with_a_mistake_is_refused(parts: list[dict[str, Any]], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Rubric.model_validate({"format": 1, "parts": parts})


def test_shares_of_absent_evidence_go_to_parts_and_answers() -> None:
    row = Row.model_validate(ROW | {"evidence": {"checks": 30, "yours": 40, "answers": 30}})
    assert row.shares(["checks", "answers"]) == {"checks": 0.3, "answers": 0.7}
    assert row.shares(["checks"]) == {"checks": 1}
    assert row.shares(["deliverables"]) == {}
