"""A fault in a file of an exercise turns the checks red that are there for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.course import CATALOG
from tests.system.exercise_faults import FAULTS, SMALL_SHARES, SMALL_TRAINING, check_fault
from tests.system.exercising import list_failed_checks, needs_torch, run_exercise

pytestmark = [pytest.mark.system, needs_torch]


@pytest.mark.parametrize("name", [pytest.param(name, marks=FAULTS[name].marks) for name in FAULTS])
def test_checks_turn_red_when_a_file_of_the_exercise_has_a_fault(name: str, tmp_path: Path) -> None:
    check_fault(name, tmp_path / "work")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "settings"), [("0.2", SMALL_SHARES), ("3.2", SMALL_TRAINING)])
def test_mutation_turns_only_its_check_red(number: str, settings: dict[str, str], tmp_path: Path) -> None:
    _, exercise = CATALOG.exercise(number)
    for question in exercise.questions:
        if question.kind == "mutation":
            change = (str(question.edit), str(question.was), str(question.becomes))
            run = run_exercise(number, tmp_path / question.id, change, ranks=2, solved=True, **settings)
            assert list_failed_checks(run) == {question.check}, run.output
