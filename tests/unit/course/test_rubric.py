"""The points of this course: a learner who only runs the provided scripts earns at most 30 of 100."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpucourse.course.part_files import is_solution, list_solutions
from gpucourse.course.rubric import find_exercises_above_the_limit, find_unknown_modules, parts_of, read_rubric
from gpucourse.grading.answers import SECOND, compare, compute_credit, count_attempts
from gpucourse.grading.points import grade
from gpucourse.model.answer import AnswerResult
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.questions import Prediction, Question
from gpucourse.model.rubric import Rubric
from gpucourse.model.score import ExerciseEvidence, Grade, PartReview
from gpucourse.model.verdict import CheckResult, choose_needed
from gpucourse.runs.parts import make_open
from tests.course import CATALOG, FOLDERS
from tests.unit.course.conftest import SmallCourse

MAX_PERCENT = 30
Answer = Callable[[Question], float | None]


def run_unedited(module: Module, exercise: Exercise, credit: Answer, *, copied: bool) -> ExerciseEvidence:
    """Return an exercise that was run, with every check passed and every file there, and this credit for each choice. A second
    run repeated the number that the first had measured as its prediction. With `copied`, each part is a solution of the course
    as it is; otherwise, nothing was written."""
    checks = tuple(
        CheckResult(id=check.id, title=check.title, verdict="passed", evidence="logic", observed="", expected="")
        for check in exercise.checks
    )
    files = tuple(deliverable.title for deliverable in exercise.deliverables)

    def answer(question: Question) -> AnswerResult:
        is_number = isinstance(question, Prediction) and question.kind == "numeric" and question.evidence != "gpu"
        share = credit(question) if question.kind == "choice" else SECOND if is_number else None
        verdict = "open" if share is None else "passed" if share > 0 else "failed"
        return AnswerResult(id=question.id, kind=question.kind, text="t", verdict=verdict, share=share)  # type: ignore[arg-type]

    folders, catalog = FOLDERS, CATALOG
    reviews = {}
    for part in exercise.yours if copied else ():
        delivered = folders.exercises / catalog.part_places(exercise)[part.id]
        reviews[part.id] = PartReview(is_solution=all(is_solution(file, delivered) for file in list_solutions(delivered)))
    parts = [make_open(part) for part in exercise.yours]
    parts = [replace(part, verdict="passed") for part in parts] if copied else parts
    return ExerciseEvidence(
        exercise=exercise.id, run="r", level="logic", checks=checks, wanted=files, handed_in=files,
        answers=tuple(map(answer, exercise.questions)), part_reviews=reviews,
        prediction=answer(exercise.predict) if exercise.predict else None, parts=choose_needed(exercise.yours, parts),
    )  # fmt: skip


def walk(credit: Answer, *, copied: bool = False) -> Grade:
    """Return the points for the whole course if every exercise is done as in `run_unedited`."""
    modules, rubric = CATALOG.modules, read_rubric(FOLDERS.modules)
    exercises = {module.id: [exercise.id for exercise in module.exercises] for module in modules}
    evidence = {
        exercise.id: run_unedited(module, exercise, credit, copied=copied)
        for module in modules
        for exercise in module.exercises
    }
    return grade(parts_of(rubric, modules), exercises, evidence)


def leave_open(_question: Question) -> None:
    """Answer nothing."""


def guess(question: Question) -> float:
    """Return the mean credit of all ways to answer a choice, once or as often as an attempt is left."""
    letters, most = question.choices, count_attempts(question)
    if isinstance(question, Prediction):  # one attempt; a question with ranges is like one whose key is the right letter
        results = [compare(question.model_copy(update={"ranges": {}, "key": "a"}), name, {}, on_gpu=False) for name in letters]
        return statistics.mean(result.share or 0 for result in results)
    means = []
    for count in range(1, most + 1):
        shares = [compute_credit(question, wrong, is_right=True) for wrong in range(count)]
        stays_wrong = compute_credit(question, count, is_right=False)
        means.append((sum(shares) + (len(letters) - count) * stays_wrong) / len(letters))
    assert means == pytest.approx([means[0]] * most)
    return means[0]


def test_parts_of_a_rubric_have_the_titles_of_the_modules() -> None:
    titles = {module.id: module.title for module in CATALOG.modules}
    parts = walk(leave_open).parts
    assert {part.module: part.title for part in parts} == {part.module: titles[part.module] for part in parts}


@pytest.mark.parametrize("copied", [False, True])
def test_read_rubric_awards_little_for_delivered_scripts_even_with_copied_solutions(copied: bool) -> None:
    points = walk(leave_open, copied=copied)
    assert points.points == 100
    assert points.earned <= MAX_PERCENT
    assert points.bonus <= MAX_PERCENT / 100 * points.bonus_points
    assert points.whole_course.percent <= MAX_PERCENT


def test_read_rubric_awards_nothing_for_guesses_on_average() -> None:
    points, open_points = walk(guess), walk(leave_open)
    assert points.earned == pytest.approx(open_points.earned, abs=0.01)
    assert points.whole_course.earned == pytest.approx(open_points.whole_course.earned, abs=0.01)


@pytest.mark.parametrize("sign", [1, -1])
def test_read_rubric_awards_more_for_right_choices_than_for_delivered_scripts(sign: int) -> None:
    difference = walk(lambda _question: float(sign)).whole_course.earned - walk(leave_open).whole_course.earned
    assert difference * sign > 0


def make_rubric(*rows: dict[str, Any], module: str = "7") -> Rubric:
    filled = [{"id": f"r{number}", "title": "a row", "points": 10, **row} for number, row in enumerate(rows)]
    return Rubric.model_validate({"format": 1, "parts": [{"module": module, "rows": filled}]})


def test_find_unknown_modules_names_missing_exercises_and_rows_that_no_learner_can_earn(course: SmallCourse) -> None:
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


def test_find_exercises_above_the_limit_names_those_whose_delivered_script_earns_too_much(course: SmallCourse) -> None:
    modules, delivery = course.load().modules, {"evidence": ["yours"]}
    assert list(find_exercises_above_the_limit(make_rubric({"evidence": ["checks"], "points": 1}, delivery), modules)) == []
    (complaint,) = find_exercises_above_the_limit(make_rubric({"evidence": ["checks"]}, delivery), modules)
    assert "checks and deliverables of 7.1 earn 50 % of its points" in complaint
