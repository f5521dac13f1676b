from __future__ import annotations

from gpucourse.course.report_plan import find_unknown_modules, read_report_plan
from tests.learning import Learning
from tests.unit.learning.test_report import PLAN


def test_read_report_plan_names_every_mistake(learning: Learning) -> None:
    learning.put("modules/report.yaml", PLAN.replace("digits: 2", "digits: many").replace('exercise: "1.2"', "exercise: mouth"))
    message = learning.types("report", code=2).err
    assert "chapters.0.figures.0.digits" in message
    assert "chapters.1.exercise" in message


def test_find_unknown_modules_names_what_the_course_does_not_have(learning: Learning) -> None:
    assert read_report_plan(learning.course / "modules") is None
    spoilt = {
        "[Springs]": "[Falls]",
        "question: why": "question: how",
        "by: depth": "by: width",
        'exercise: "1.2"': 'exercise: "1.9"',
    }
    text = PLAN
    for original, replacement in spoilt.items():
        text = text.replace(original, replacement)
    learning.put("modules/report.yaml", text)
    plan = read_report_plan(learning.course / "modules")
    assert plan is not None
    assert list(find_unknown_modules(plan, learning.context.catalog.modules)) == [
        "report.yaml: chapters.flow.tables: 1.1 has no table 'Falls'",
        "report.yaml: chapters.flow.words: 1.1 has no question 'how'",
        "report.yaml: chapters.flow.by: 1.1 has no parameter 'width'",
        "report.yaml: chapters.mouth.exercise: there is no exercise 1.9",
    ]
