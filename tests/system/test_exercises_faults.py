"""Faults in files of exercises: each makes the checks fail that should detect it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.course import CATALOG
from tests.system.exercise_faults import FAULTS, SMALL_SHARES, check_fault
from tests.system.exercising import list_failed_checks, needs_torch, run_exercise

pytestmark = [pytest.mark.system, needs_torch]


@pytest.mark.parametrize("name", [pytest.param(name, marks=FAULTS[name].marks) for name in FAULTS])
def test_checks_turn_red_when_a_file_of_the_exercise_has_a_fault(name: str, tmp_path: Path) -> None:
    check_fault(name, tmp_path / "work")


@pytest.mark.slow
def test_mutation_turns_only_its_check_red(tmp_path: Path) -> None:
    _, exercise = CATALOG.exercise("0.2")
    (mutation,) = [question for question in exercise.questions if question.kind == "mutation"]
    change = (str(mutation.edit), str(mutation.was), str(mutation.becomes))
    run = run_exercise("0.2", tmp_path / "work", change, ranks=2, solved=True, **SMALL_SHARES)
    assert list_failed_checks(run) == {mutation.check}, run.output
