"""The learner's formulas of ZeRO beside what was counted."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

FOLDER = "06-training-at-scale"
zero_formulas = beside_the_script(FOLDER, "zero_formulas")


def solution() -> ModuleType:
    return beside_the_script(f"{FOLDER}/solutions", "my_zero")


def row(stage: int, sizes: tuple[float, float, float], sent: float, explained: float = 0.0) -> dict[str, Any]:
    held = {f"{part}_bytes": size for part, size in zip(zero_formulas.PARTS, sizes, strict=True)}
    return {"stage": stage, **held, "sent_bytes": sent, "sent_explained_bytes": explained}


def test_compare_finds_right_formulas_no_byte_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_zero", solution())
    rows = [row(1, (400, 400, 200), sent=900, explained=300), row(3, (100, 100, 200), sent=900)]
    paper_off_gb, word = zero_formulas.compare(rows, 100, 4)
    assert word == "no error"
    assert paper_off_gb is not None
    assert paper_off_gb < 0.05, "the paper rounds to a tenth"
    assert [(counted["off_bytes"], counted["sent_off_bytes"]) for counted in rows] == [(0, 0), (0, 0)]
    assert [counted["by_formula_bytes"] for counted in rows] == [1000, 400]


def test_compare_leaves_the_rows_if_a_formula_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = SimpleNamespace(bytes_per_rank=lambda *_: (1, 2, 3), traffic=lambda *_: 1 / 0)
    monkeypatch.setitem(sys.modules, "my_zero", broken)
    rows = [row(0, (400, 400, 800), sent=600)]
    before = dict(rows[0])
    assert zero_formulas.compare(rows, 100, 4) == (None, "ZeroDivisionError: division by zero")
    assert rows == [before]
