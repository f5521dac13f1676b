from __future__ import annotations

from pathlib import Path

from gpucourse.learning.report import ReportResult
from gpucourse.model.report import Chapter
from gpucourse.ui.views import report as views
from tests.unit.report.examples import report
from tests.unit.ui.examples import text


def test_report_names_what_is_missing_and_each_run_once() -> None:
    chapters = [
        Chapter(id=name, title=name, text="", sources=("otter",), missing=("a run. `gpucourse run 4.3`",)) for name in "ab"
    ]
    output = text(views.report(ReportResult(report=report(*chapters), files=(Path("/w/report.html"),))))
    for words in ("/w/report.html", "Tesla T4, NVIDIA L4", "1 run: otter", "a: a run. gpucourse run 4.3", "b: a run."):
        assert words in output, words
    assert "Still missing" not in text(views.report(ReportResult(report=report(), files=())))
