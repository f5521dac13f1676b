from __future__ import annotations

from tests.course import CATALOG
from tests.page_pictures import RUNS


def test_runs_of_the_pictures_answer_the_predictions_of_their_exercises() -> None:
    for _, exercise_id, *words in RUNS:
        question = CATALOG.exercise(exercise_id)[1].predict
        assert question is not None
        if "--predict" in words:
            name, _, answer = words[words.index("--predict") + 1].partition("=")
            assert name == question.id
            assert answer in question.ranges
