"""A fault in a file of an exercise, of modules 5 to B, turns the checks red that are there for it: the table's second half."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.exercise_faults import FAULTS, check_fault
from tests.system.exercising import needs_torch

pytestmark = [pytest.mark.system, needs_torch]


@pytest.mark.parametrize("name", [pytest.param(name, marks=FAULTS[name].marks) for name in FAULTS if name[0] in "5678B"])
def test_checks_turn_red_when_a_file_of_modules_5_to_b_has_a_fault(name: str, tmp_path: Path) -> None:
    check_fault(name, tmp_path / "work")
