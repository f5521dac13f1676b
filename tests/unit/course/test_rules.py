"""Rules of one manifest: its keys that name a parameter."""

from __future__ import annotations

from typing import Any

from gpucourse.course.lint import lint


def test_broken_rules_names_a_wrong_number_of_restarts(clean_course: Any) -> None:
    count = "- {name: again, type: int, default: 2, min: 0, max: 10, help: how often}\n      - {name: depth"
    clean_course.change("- {name: depth", count)
    clean_course.change("kind: torchrun, nodes: 2", "kind: torchrun, nodes: 2, restarts: again")
    assert lint(clean_course.load()) == []
    clean_course.change("restarts: again", "restarts: depth")
    assert "from 0 to 100" in lint(clean_course.load())[0]
    clean_course.change("restarts: depth", "restarts: nothing")
    assert "'nothing' is not a parameter of this exercise" in lint(clean_course.load())[0]
    clean_course.change("restarts: nothing", "restarts: 101")
    assert "100" in lint(clean_course.load())[0]
    clean_course.change("kind: torchrun, nodes: 2, restarts: 101", "kind: python, restarts: 1")
    assert "restarts is for the kind torchrun" in lint(clean_course.load())[0]


def test_broken_rules_names_a_question_with_the_id_of_a_part(clean_course: Any) -> None:
    part = clean_course.load().modules[0].exercises[0].yours[0].id
    question = clean_course.load().modules[0].exercises[0].questions[0].id
    clean_course.change(f"id: {question}", f"id: {part}")
    assert f"'{part}' is also the id of a question" in lint(clean_course.load())[0]
