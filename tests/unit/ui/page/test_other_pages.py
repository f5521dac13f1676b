from __future__ import annotations

import re

from tests.learning import METRICS, Learning
from tests.unit.learning.test_report import PLAN
from tests.unit.ui.page.pages import pages_of


def test_build_side_by_side_shows_differences(learning: Learning) -> None:
    springs = [{"litres": 1.5}, {"litres": 2.5}]
    learning.record("1.1", METRICS | {"springs": springs}, parameters={"depth": 10})
    learning.record("1.1", METRICS | {"springs": springs}, parameters={"depth": 25})
    page = pages_of(learning)["compare/1.1.html"]
    assert re.search(r"depth</th><td[^>]*>10 .*?</td><td[^>]*>25 <span class=\"delta\">\+150 %</span>", page)
    assert '<tr class="same"><th scope="row">row 1' in page


def test_build_report_without_runs_has_a_subtitle_that_ends_in_no_separator(learning: Learning) -> None:
    learning.put("modules/report.yaml", PLAN)
    assert re.search(r'<p class="lead">[^<]*\d</p>', pages_of(learning)["report.html"])
