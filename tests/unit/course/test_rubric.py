"""What this course's points are given for: somebody who only presses buttons gets at most 35 of 100."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.course.rubric import find_pressed_exercises, find_unknown_modules, parts_of, read_rubric
from gpucourse.grading.answers import judge
from gpucourse.grading.points import grade
from gpucourse.model.answer import AnswerResult
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.questions import Question
from gpucourse.model.rubric import Rubric
from gpucourse.model.score import ExerciseEvidence, Grade
from gpucourse.model.verdict import CheckResult
from gpucourse.runs.parts import make_open
from tests.unit.course.conftest import SmallCourse

MOST = 35
Answer = Callable[[Question], str | None]


def give(question: Question, answer: str | None) -> AnswerResult:
    """Return the result of an answer to a question that needs no run; others stay open."""
    return judge(question, answer if question.kind == "choice" else None, None, on_gpu=False)


def press_buttons(exercise: Exercise, answer: Answer) -> ExerciseEvidence:
    """Return an exercise that was run as delivered, with every check passed and every file there; nothing was written."""
    checks = tuple(
        CheckResult(id=check.id, title=check.title, verdict="passed", evidence="logic", observed="", expected="")
        for check in exercise.checks
    )
    files = tuple(deliverable.title for deliverable in exercise.deliverables)
    return ExerciseEvidence(
        exercise=exercise.id, run="r", level="logic", checks=checks, wanted=files, handed_in=files,
        answers=tuple(give(question, answer(question)) for question in exercise.questions),
        prediction=give(exercise.predict, answer(exercise.predict)) if exercise.predict else None,
        parts=tuple(make_open(part) for part in exercise.yours),
    )  # fmt: skip


@functools.cache
def read_course() -> tuple[tuple[Module, ...], Rubric | None]:
    """Return the modules and the rubric of this course."""
    folders = find_course({})
    return load(folders).modules, read_rubric(folders.modules)


def walk(answer: Answer) -> Grade:
    """Return the points for the whole course, walked like that."""
    modules, rubric = read_course()
    exercises = {module.id: [exercise.id for exercise in module.exercises] for module in modules}
    evidence = {exercise.id: press_buttons(exercise, answer) for module in modules for exercise in module.exercises}
    return grade(parts_of(rubric, modules), exercises, evidence)


def test_parts_have_the_titles_of_the_modules() -> None:
    titles = {module.id: module.title for module in read_course()[0]}
    assert {part.module: part.title for part in walk(lambda _question: None).parts} == titles


@pytest.mark.parametrize("letter", [None, "a", "b", "c", "d"])
def test_grade_of_pressing_buttons_and_one_letter_everywhere_is_low(letter: str | None) -> None:
    points = walk(lambda question: letter if letter in question.choices else None)
    assert points.points == 100
    assert points.earned <= MOST
    own_parts = [part for part in points.parts if part.counts == "own"]
    assert sum(part.earned for part in own_parts) <= MOST / 100 * sum(part.points for part in own_parts)


def test_grade_of_right_choices_is_above_pressing_buttons() -> None:
    assert walk(lambda question: question.key).earned > walk(lambda _question: None).earned


def make_rubric(*rows: dict[str, Any], module: str = "7") -> Rubric:
    filled = [{"id": f"r{number}", "title": "a row", "points": 10, **row} for number, row in enumerate(rows)]
    return Rubric.model_validate({"format": 1, "parts": [{"module": module, "rows": filled}]})


def test_find_unknown_modules_names_what_is_not_there_and_what_no_learner_can_earn(course: SmallCourse) -> None:
    course.change("    deliverables: [{title: The log, source: logs/*.log}]\n", "")
    modules = course.load().modules
    rows: list[dict[str, Any]] = [
        {"evidence": ["answers"], "exercises": ["7.1", "7.2"]}, {"evidence": ["deliverables"]}, {"evidence": ["checks"]},
    ]  # fmt: skip
    assert list(find_unknown_modules(make_rubric(*rows), modules)) == [
        "rubric.yaml: parts.7.r0: there is no exercise 7.2",
        "rubric.yaml: parts.7.r1: evidence deliverables: 7.1 asks for none, so no learner can earn it",
    ]
    unknown = make_rubric(rows[2], module="8")
    assert list(find_unknown_modules(unknown, modules)) == ["rubric.yaml: parts.8: there is no module 8"]


def test_find_pressed_exercises_names_those_whose_delivered_script_earns_too_much(course: SmallCourse) -> None:
    modules, delivery = course.load().modules, {"evidence": ["yours"]}
    assert list(find_pressed_exercises(make_rubric({"evidence": ["checks"], "points": 1}, delivery), modules)) == []
    (complaint,) = find_pressed_exercises(make_rubric({"evidence": ["checks"]}, delivery), modules)
    assert "checks and deliverables of 7.1 give 50% of its points" in complaint
