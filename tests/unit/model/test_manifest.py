"""Rules of an exercise and its plots that involve more than one key."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gpucourse.model.manifest import Exercise, Plot

EXERCISE: dict[str, Any] = {
    "id": "7.1", "title": "t", "goal": "g", "minutes": 1, "script": "s.py", "launch": {"kind": "python"}, "tasks": ["t"],
    "hints": ["h"],
}  # fmt: skip
PLOT: dict[str, Any] = {
    "file": "p", "title": "t", "kind": "line", "rows": "metrics.r", "x": "n", "series": [{"key": "y", "label": "y"}],
    "x_title": "n", "y_title": "y",
}  # fmt: skip


def make_table(title: str, *, main: bool = False) -> dict[str, Any]:
    return {"title": title, "rows": "metrics.r", "columns": [{"key": "n", "title": "n"}], "main": main}


def make_part(name: str, **keys: Any) -> dict[str, Any]:
    return {"id": name, "title": "t", "file": "s.py", "write": "w", **keys}


CHECK = {"id": "c", "title": "t", "value": "metrics.v", "equals": 1, "hint": "h"}
MUTATION = {"id": "q", "kind": "mutation", "text": "t", "check": "c", "edit": "s.py", "was": "a", "becomes": ""}


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"tables": [make_table("a", main=True), make_table("b", main=True)]}, "only one can be main"),
        ({"predict": {"id": "p", "text": "t", "value": "metrics.v"}, "no_predict": "n"}, "predict and no_predict cannot be"),
        ({"questions": [MUTATION]}, "question q: `check` must name"),
        ({"questions": [MUTATION, MUTATION | {"id": "r"}], "checks": [CHECK]}, "two mutations edit s.py and name c"),
        ({"yours": [make_part("a"), make_part("b", instead_of="c")]}, "part b: instead_of must be another part"),
        ({"yours": [make_part("a", instead_of="a")]}, "part a: instead_of must be another part"),
        ({"yours": [make_part("a")], "hints": [{"part": "b", "text": "h"}]}, "hint 1: b is not a part of this exercise"),
        ({"hints": ["h", {"ways": ["w"], "text": "h"}]}, "hint 2: ways need a part"),
    ],
)
def test_exercise_with_parts_that_do_not_agree_is_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Exercise.model_validate(EXERCISE | keys)


def test_main_table_is_the_marked_one_or_the_first() -> None:
    tables = [make_table("a"), make_table("b", main=True)]
    tables_chosen = [Exercise.model_validate(EXERCISE | {"tables": tables[:count]}).main_table for count in range(3)]
    assert [table and table.title for table in tables_chosen] == [None, "a", "b"]


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"kind": "bar", "ideal": True}, "bars have words below them, and words have no ideal line"),
        ({"ideal": True, "ideal_key": "i"}, "ideal and ideal_key cannot be combined"),
        ({"by": "gpu", "ideal": True}, "`by` is for lines and cannot be combined with `ideal`"),
        ({"series": [{"key": "y", "label": "y", "low": "p20"}]}, "low and high belong together"),
    ],
)
def test_plot_that_cannot_be_drawn_is_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Plot.model_validate(PLOT | keys)
