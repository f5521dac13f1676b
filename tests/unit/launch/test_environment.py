"""Variables that were typed: they win over what is set otherwise, and a value that is handed on stands in no plan."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch.environment import read_variables
from gpucourse.ui.render import render
from gpucourse.ui.views.plan import launch as view_of_plan
from tests.unit.launch.test_planning import make_plan, node


def test_read_variables_tells_values_from_names() -> None:
    here = {"TOKEN": "secret", "EMPTY": ""}
    assert read_variables(["A=1", "B=x=y", "TOKEN", "EMPTY"], here) == ({"A": "1", "B": "x=y"}, ("TOKEN", "EMPTY"))


def test_typed_variable_wins_and_is_shown_and_a_secret_is_a_name() -> None:
    plan = make_plan(node(0), node(1), environment={"OMP_NUM_THREADS": "7", "MINE": "a b"}, handed_on=("TOKEN",))
    assert [command.env["OMP_NUM_THREADS"] for command in plan.commands] == ["7", "7"]
    assert json.loads(json.dumps(asdict(plan), default=str))["handed_on"] == ["TOKEN"]
    shown = render(view_of_plan(plan), width=120)
    assert "  MINE='a b'" in shown
    assert '  TOKEN="$TOKEN"' in shown


def test_read_variables_only_hands_on_bytes_that_are_no_text() -> None:
    with pytest.raises(UsageError, match="--env A: the value is not text in UTF-8"):
        read_variables(["A=\udcff"], {})
    assert read_variables(["A"], {"A": "\udcff"}) == ({}, ("A",))
