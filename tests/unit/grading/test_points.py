"""Points: every row in equal shares, only from evidence, free text only once a person has judged it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpucourse.grading.points import grade, narrow
from gpucourse.model.answer import AnswerResult
from gpucourse.model.rubric import Row, RubricPart
from gpucourse.model.score import ExerciseEvidence, Grade
from gpucourse.model.verdict import CheckResult, PartResult


def check(verdict: Any, *, evidence: Any = "logic", name: str = "c") -> CheckResult:
    return CheckResult(id=name, title="t", verdict=verdict, evidence=evidence, observed="", expected="")


def answer(verdict: Any, share: float | None = None, name: str = "q") -> AnswerResult:
    return AnswerResult(id=name, kind="text", text="t", verdict=verdict, share=share)


def make_evidence(exercise: str = "1.1", **fields: Any) -> ExerciseEvidence:
    return ExerciseEvidence(**({"exercise": exercise, "run": "r1", "level": "logic"} | fields))


def score(*evidence_list: ExerciseEvidence, evidence: Any = ("checks",), points: float = 10, exercises: Any = ()) -> Grade:
    row = Row.model_validate({"id": "r", "title": "r", "points": points, "evidence": evidence, "exercises": exercises})
    part = RubricPart(module="1", title="t", rows=(row,))
    return grade((part,), {"1": [item.exercise for item in evidence_list]}, {item.exercise: item for item in evidence_list})


@pytest.mark.parametrize(
    ("checks", "earned", "note"),
    [
        ([check("passed")], 10, ""),
        ([check("passed"), check("failed", name="f")], 5, "failed: f"),
        ([check("passed"), check("error", name="e")], 5, "in error: e"),
        ([check("passed"), check("not_measured", evidence="gpu")], 10, ""),
        ([check("passed"), check("not_measured", name="open")], 5, "not measured: open"),
        ([check("not_measured", evidence="gpu")], 0, "needs a GPU"),
    ],
)
def test_grade_counts_passed_checks(checks: list[CheckResult], earned: float, note: str) -> None:
    result = score(make_evidence(checks=tuple(checks)))
    assert result.earned == earned
    assert result.parts[0].rows[0].pieces[0].note == note


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"run": None}, "no run yet"),
        ({"changed": ("metrics.json",)}, "changed after the run: metrics.json"),
        ({"trouble": "metrics.json is damaged"}, "metrics.json is damaged"),
    ],
)
def test_grade_without_evidence_that_holds_is_zero(changes: dict[str, Any], note: str) -> None:
    whole = {"checks": (check("passed"),), "wanted": ("log",), "handed_in": ("log",)}
    for kind in ("checks", "deliverables"):
        result = score(make_evidence(**(whole | changes)), evidence=(kind,))
        assert result.earned == 0
        assert result.parts[0].rows[0].pieces[0].note == note
        assert result.parts[0].rows[0].level == "none"


def test_grade_counts_the_deliverables_that_exist() -> None:
    result = score(make_evidence(wanted=("log", "plot"), handed_in=("plot",)), evidence=("deliverables",), points=5)
    assert result.earned == 2.5
    assert result.parts[0].rows[0].pieces[0].note == "missing: log"
    assert result.parts[0].rows[0].pieces[0].short == "1 of 2 files missing"


def test_grade_counts_free_text_by_its_judgement() -> None:
    answers = (answer("passed"), answer("failed", name="w"), answer("kept"), answer("open", name="o"))
    result = score(make_evidence(answers=answers), evidence=("answers",))
    assert (result.earned, result.waiting) == (2.5, 2.5)
    assert result.parts[0].rows[0].pieces[0].note == "open: o; wrong: w; 1 answer needs review"
    review_score = score(make_evidence(answers=(*answers[:2], answer("kept", 0.5), answers[3])), evidence=("answers",))
    assert (review_score.earned, review_score.waiting) == (3.75, 0)
    self_reviewed = replace(answers[2], self_judged=True, share=0.5)
    self_score = score(make_evidence(answers=(*answers[:2], self_reviewed, answers[3])), evidence=("answers",))
    assert (self_score.earned, self_score.waiting) == (3.75, 1.25)
    assert self_score.parts[0].rows[0].pieces[0].note == "open: o; wrong: w; 1 self-reviewed"


def test_grade_leaves_out_answers_that_need_a_gpu() -> None:
    on_gpu = AnswerResult(id="g", kind="numeric", text="t", verdict="open", evidence="gpu")
    assert score(make_evidence(answers=(answer("passed"), on_gpu)), evidence=("answers",)).earned == 10
    assert score(make_evidence(answers=(answer("passed"), on_gpu), level="gpu"), evidence=("answers",)).earned == 5
    assert score(make_evidence(answers=(on_gpu,)), evidence=("answers",)).parts[0].rows[0].pieces[0].note == "needs a GPU"


def test_grade_shares_a_row_among_exercises_and_kinds() -> None:
    whole = make_evidence("1.1", checks=(check("passed"),), answers=(answer("passed"),))
    half = make_evidence("1.2", checks=(check("passed"), check("failed")), answers=(answer("open"),))
    assert score(whole, half, evidence=("checks", "answers")).earned == pytest.approx(10 * (1 + 1 + 0.5 + 0) / 4)
    assert score(whole, half, evidence=("checks", "answers"), exercises=("1.1",)).earned == 10


def test_grade_has_no_share_for_evidence_that_an_exercise_does_not_require() -> None:
    assert (
        score(make_evidence("1.1", checks=(check("passed"),)), make_evidence("1.2"), evidence=("checks", "answers")).earned
        == 10
    )


def test_level_of_a_row_says_whether_a_gpu_was_used() -> None:
    on_gpu, simulated = (
        make_evidence("1.1", checks=(check("passed"),), level="gpu"),
        make_evidence("1.2", checks=(check("passed"),)),
    )
    assert score(on_gpu).parts[0].rows[0].level == "gpu"
    assert score(on_gpu, simulated).parts[0].rows[0].level == "logic"


def test_grade_of_a_module_that_the_course_does_not_have_is_zero() -> None:
    part = RubricPart(
        module="2", title="t", rows=(Row(id="r", title="r", points=10, evidence={"checks": 1}, exercises=("2.1",)),)
    )
    result = grade((part,), {}, {})
    assert (result.points, result.earned, result.parts[0].here) == (10, 0, False)


def test_grade_has_the_bonus_and_the_whole_course_beside_the_points() -> None:
    row = Row(id="r", title="r", points=10, evidence={"checks": 1})
    parts = (
        RubricPart(module="1", title="t", rows=(row,)),
        RubricPart(module="B", title="t", counts="bonus", rows=(row,)),
    )
    fields: dict[str, Any] = {"checks": (check("passed"),), "parts": (part_result("open"),), "answers": (answer("open"),)}
    evidence = {name: make_evidence(name, **fields) for name in ("1.1", "B.1", "0.1", "0.2")}
    exercises = {"1": ["1.1"], "B": ["B.1"], "0": ["0.1", "0.2"]}
    result = grade(parts, exercises, evidence, titles={"0": "Springs", "0.2": "Dew"})
    assert (result.points, result.earned, result.bonus_points, result.bonus) == (10, 10, 10, 10)
    whole = result.whole_course
    assert (whole.points, whole.earned, whole.percent) == (40, 6, 15), "15 % for the checks of each"
    assert [(module.module, module.points, module.earned) for module in whole.modules] == [
        ("1", 10, 1.5),
        ("B", 10, 1.5),
        ("0", 20, 3),
    ]
    assert (whole.modules[2].title, [(row.id, row.title) for row in whole.modules[2].rows]) == (
        "Springs",
        [("0.1", "0.1"), ("0.2", "Dew")],
    )
    assert (narrow(result, {"0.2"}).whole_course.points, narrow(result, {"0.2"}).whole_course.earned) == (10, 1.5)


def part_result(verdict: Any, name: str = "p") -> PartResult:
    return PartResult(id=name, title="t", file="my_p.py", verdict=verdict)


def test_grade_shares_an_exercise_among_its_kinds_of_evidence_by_weight() -> None:
    weights = {"checks": 30, "yours": 40, "answers": 30}
    fields: dict[str, Any] = {"checks": (check("passed"),), "answers": (answer("open"),), "parts": (part_result("open"),)}
    assert score(make_evidence(**fields), evidence=weights).earned == 3
    part_evidence = make_evidence(**fields | {"parts": (part_result("passed"), part_result("failed", "f"))})
    assert score(part_evidence, evidence=weights).earned == 5
    assert [piece.note for piece in score(part_evidence, evidence=weights).parts[0].rows[0].pieces] == [
        "",
        "part wrong: f",
        "open: q",
    ]


def test_grade_subtracts_points_of_the_module_for_wrong_choices_down_to_zero() -> None:
    wrong_answer = answer("failed", -0.5)
    assert score(make_evidence(answers=(answer("passed"), wrong_answer)), evidence=("answers",)).earned == 2.5
    only_wrong = score(make_evidence(answers=(wrong_answer,)), evidence=("answers",))
    assert (only_wrong.earned, only_wrong.parts[0].rows[0].earned) == (0, -5)
    whole = score(make_evidence(checks=(check("passed"),), answers=(wrong_answer,)), evidence=("checks", "answers"))
    assert whole.earned == 2.5


def test_grade_counts_a_prediction_as_one_more_answer() -> None:
    prediction = AnswerResult(id="p", kind="prediction", text="t", verdict="passed", share=0.5)
    assert score(make_evidence(answers=(answer("passed"),), prediction=prediction), evidence=("answers",)).earned == 7.5
    assert score(make_evidence(prediction=replace(prediction, evidence="gpu")), evidence=("answers",)).earned == 0


@pytest.mark.parametrize(("verdict", "word"), [("open", "open"), ("failed", "wrong")])
def test_grade_names_the_prediction_and_how_it_is_typed(verdict: Any, word: str) -> None:
    prediction = AnswerResult(id="p", kind="prediction", text="t", verdict=verdict)
    evidence = make_evidence(answers=(answer("open"),), prediction=prediction)
    piece = score(evidence, evidence=("answers",)).parts[0].rows[0].pieces[0]
    assert piece.short == f"1 answer open, 1 prediction {word}"
    assert piece.note == f"open: q; prediction {word}: gpucourse run 1.1 --predict p=VALUE"


def test_narrow_returns_the_share_of_one_exercise_in_its_rows() -> None:
    result = score(make_evidence("1.1", checks=(check("passed"),)), make_evidence("1.2", checks=(check("failed"),)))
    shares = [narrow(result, {exercise}) for exercise in ("1.1", "1.2")]
    assert [(share.points, share.earned) for share in shares] == [(5, 5), (5, 0)]
    assert [(row.level, len(row.pieces)) for share in shares for row in share.parts[0].rows] == [("logic", 1), ("none", 1)]
    assert narrow(result, {"9.9"}).parts == ()
