from __future__ import annotations

import pytest

from gpucourse.grading.points import read_signs
from gpucourse.model.answer import AnswerResult
from gpucourse.model.score import ExerciseEvidence, Signs
from gpucourse.model.verdict import CheckResult, PartResult


def make_check(verdict: str) -> CheckResult:
    return CheckResult(id="c", title="t", verdict=verdict, evidence="logic", observed="", expected="")  # type: ignore[arg-type]


def make_answer(verdict: str, **fields: object) -> AnswerResult:
    return AnswerResult(**({"id": "q", "kind": "choice", "text": "t", "verdict": verdict} | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "signs"),
    [
        ({"run": None}, Signs(ran=False)),
        ({"checks": (make_check("failed"),)}, Signs(ran=False)),
        ({"changed": ("run.json",)}, Signs(ran=False)),
        ({"trouble": "damaged"}, Signs(ran=False)),
        ({"checks": (make_check("not_measured"),)}, Signs(ran=True)),
        ({"parts": (PartResult(id="p", title="t", file="f", verdict="failed"),)}, Signs(ran=True, yours=False)),
        ({"parts": (PartResult(id="p", title="t", file="f", verdict="passed"),)}, Signs(ran=True, yours=True)),
        ({"answers": (make_answer("failed"),)}, Signs(ran=True, answered=False)),
        ({"answers": (make_answer("failed", final=True),)}, Signs(ran=True, answered=True)),
        ({"answers": (make_answer("open", evidence="gpu"),)}, Signs(ran=True)),
        ({"answers": (make_answer("open", evidence="gpu"),), "level": "gpu"}, Signs(ran=True, answered=False)),
    ],
)
def test_read_signs_of_an_exercise(changes: dict[str, object], signs: Signs) -> None:
    fields = {"exercise": "1.1", "run": "r", "level": "logic"} | changes
    assert read_signs(ExerciseEvidence(**fields)) == signs  # type: ignore[arg-type]
    assert signs.is_done == all(value is not False for value in (signs.ran, signs.yours, signs.answered))
