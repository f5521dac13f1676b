"""The learner's counts of 6.2 beside what was counted."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

pytest.importorskip("torch")
FOLDER = "06-training-at-scale"
zero_plans = beside_the_script(FOLDER, "zero_plans")


def solution(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(find_course({}).exercises / FOLDER)
    return beside_the_script(f"{FOLDER}/solutions", "my_count")


def row(stage: int, held: float, sent_bytes: float, explained: float = 0.0) -> dict[str, Any]:
    return {"stage": stage, "state_bytes": held, "sent_bytes": sent_bytes, "sent_explained_bytes": explained}


PLAN = {"settings": {"parameters": 100, "nodes": 2, "per_node": 2, "weights": "node", "gradients": "node", "optimizer": "node"},
        "held_bytes": 800, "inside_bytes": 600, "across_bytes": 200}  # fmt: skip


def test_compare_right_counts_differ_by_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_count", solution(monkeypatch))
    rows = [row(1, 1000, sent_bytes=900, explained=300), row(3, 400, sent_bytes=900)]
    off, word = zero_plans.compare(rows, [dict(PLAN)], 100, 2, 4)
    assert word == "no error"
    assert off.pop("paper_off_gb") < 0.05, "the paper rounds to a tenth"
    assert set(off.values()) == {0}
    assert [compared_row["by_formula_bytes"] for compared_row in rows] == [1000, 400]


def test_compare_of_a_count_that_fails_leaves_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_count", SimpleNamespace(count=lambda _: 1 / 0))
    rows, old_row = [row(0, 1600, sent_bytes=600)], row(0, 1600, sent_bytes=600)
    off, word = zero_plans.compare(rows, [dict(PLAN)], 100, 2, 4)
    assert (set(off.values()), word, rows) == ({None}, "ZeroDivisionError: division by zero", [old_row])
