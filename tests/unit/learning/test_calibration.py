from __future__ import annotations

from functools import partial
from pathlib import Path

from gpucourse.learning.calibration import draw_calibration, draw_files
from gpucourse.model.record import GivenPrediction
from tests.learning import Learning
from tests.unit.learning.test_predictions import DIRECTION, ask_for_prediction


def test_draw_files_puts_predictions_over_measurements(learning: Learning, tmp_path: Path) -> None:
    ask_for_prediction(learning)
    context = learning.context
    learning.record()
    assert draw_calibration(context, partial(draw_files, tmp_path)) == ()
    learning.record(prediction=GivenPrediction(id="faster", answer="3.8"), parameters={"depth": 20})
    learning.record(prediction=GivenPrediction(id="faster", answer="1.9"), parameters={"depth": 30})
    (chapter,) = draw_calibration(context, partial(draw_files, tmp_path))
    assert chapter.grids[0].rows == (("1.1", "How much faster will it be?", "3.8 times", "1.9 times", "+100 %"),)
    (picture,) = chapter.pictures
    assert picture.png.startswith(b"\x89PNG")
    assert b"<svg" in picture.svg
    learning.types("report", "--of", "course")
    assert "![Predicted over measured, exercise by exercise](calibration.png)" in context.paths.course_report.read_text()
    assert (context.paths.course_report.parent / "calibration.png").is_file()


def test_draw_calibration_shows_a_choice_as_text_with_its_result(learning: Learning, tmp_path: Path) -> None:
    ask_for_prediction(learning, DIRECTION)
    learning.record(prediction=GivenPrediction(id="faster", answer="b"), parameters={"depth": 20})
    (chapter,) = draw_calibration(learning.context, partial(draw_files, tmp_path))
    (table,) = chapter.grids
    assert table.columns == ("exercise", "what", "predicted", "measured", "result")
    assert table.numeric == (False, False, False, True, False)
    assert table.rows[0][2:] == ("b. more: b", "1.9 times", "a is right")
