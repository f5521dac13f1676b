"""The parts of this course's exercises."""

from __future__ import annotations

from tests.course import CATALOG

JUDGED_WITHOUT_A_RUN = {"B.3"}


def test_every_exercise_has_a_check_of_its_run_that_only_a_right_part_passes() -> None:
    """Without one, `next` does not ask for a run with the part that `try` calls right."""
    exercises = [exercise for module in CATALOG.modules for exercise in module.exercises if exercise.yours]
    without_checks = {exercise.id for exercise in exercises if not any(part.checks for part in exercise.yours)}
    assert without_checks <= JUDGED_WITHOUT_A_RUN
