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


def row(stage: int, sizes: tuple[float, float, float], sent_bytes: float, explained: float = 0.0) -> dict[str, Any]:
    part_sizes = {f"{part}_bytes": size for part, size in zip(zero_formulas.PARTS, sizes, strict=True)}
    return {"stage": stage, **part_sizes, "sent_bytes": sent_bytes, "sent_explained_bytes": explained}


def test_compare_finds_right_formulas_no_byte_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_zero", solution())
    rows = [row(1, (400, 400, 200), sent_bytes=900, explained=300), row(3, (100, 100, 200), sent_bytes=900)]
    paper_off_gb, word = zero_formulas.compare(rows, 100, 4)
    assert word == "no error"
    assert paper_off_gb is not None
    assert paper_off_gb < 0.05, "the paper rounds to a tenth"
    assert [(compared_row["off_bytes"], compared_row["sent_off_bytes"]) for compared_row in rows] == [(0, 0), (0, 0)]
    assert [compared_row["by_formula_bytes"] for compared_row in rows] == [1000, 400]


def test_compare_leaves_the_rows_if_a_formula_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    faulty_module = SimpleNamespace(bytes_per_rank=lambda *_: (1, 2, 3), traffic=lambda *_: 1 / 0)
    monkeypatch.setitem(sys.modules, "my_zero", faulty_module)
    rows = [row(0, (400, 400, 800), sent_bytes=600)]
    old_row = dict(rows[0])
    assert zero_formulas.compare(rows, 100, 4) == (None, "ZeroDivisionError: division by zero")
    assert rows == [old_row]
