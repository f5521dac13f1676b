from __future__ import annotations

from typing import Any

from gpucourse.course.lint import lint
from gpucourse.course.quiz import read_quiz


def test_read_quiz_complains_through_the_lint(clean_course: Any) -> None:
    assert read_quiz(clean_course.folders.modules) is None
    clean_course.put(
        "modules/quiz.yaml",
        "format: 1\ntitle: Rivers\nlessons: [{id: flow, title: Flow}]\nquestions:\n  - {id: shape, lesson: flow, kind: choice, "
        "text: Which?, explanation: e, key: a, options: [a ring, a tree, and a line, none]}\n",
    )
    (complaint,) = lint(clean_course.load())
    assert complaint.startswith("modules/quiz.yaml: questions.0.options: 'a ring' has no quotes in an inline list")


def test_find_unknown_modules_names_those_of_the_quiz_that_are_missing(clean_course: Any) -> None:
    question = "{id: deep, lesson: flow, kind: numeric, text: How deep?, explanation: e, value: 1}"
    lesson = '{id: flow, title: Flow, module: "9"}'
    clean_course.put("modules/quiz.yaml", f"format: 1\ntitle: Rivers\nlessons: [{lesson}]\nquestions: [{question}]\n")
    assert lint(clean_course.load()) == ["modules/quiz.yaml: there is no module 9"]
