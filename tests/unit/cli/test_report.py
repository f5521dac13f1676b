from __future__ import annotations

import pytest

from gpucourse.model.record import GivenPrediction
from tests.learning import Learning
from tests.unit.learning.test_predictions import ask_for_prediction
from tests.unit.learning.test_report import PLAN, rivers

__all__ = ["rivers"]  # the fixture


@pytest.mark.parametrize(
    ("ending", "files"), [("html", ["report.html"]), ("pdf", ["report.pdf"]), ("md", ["flow-1.png", "report.md"])]
)
def test_report_in_one_format_writes_its_files(rivers: Learning, ending: str, files: list[str]) -> None:
    rivers.record()
    rivers.types("report", "--format", ending, "--author", "Ada Example")
    assert sorted(path.name for path in (rivers.workspace / "deliverables" / "final").iterdir()) == files


def test_report_of_predictions_alone_is_refused(rivers: Learning) -> None:
    ask_for_prediction(rivers)
    rivers.record(prediction=GivenPrediction(id="faster", answer="3.8"))
    rivers.put("modules/report.yaml", PLAN.replace('exercise: "1.1"', 'exercise: "1.2"'))
    result = rivers.types("report", code=3)
    assert "no good run of 1.2" in result.err
    assert "gpucourse run 1.2" in result.err
    assert not (rivers.workspace / "deliverables" / "final").exists()


def test_report_of_a_course_without_a_plan_is_refused(learning: Learning) -> None:
    assert "report.yaml" in learning.types("report", code=3).err
