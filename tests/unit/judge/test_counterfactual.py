"""A cause is shown only if the solution with the same error has the same output on the same case."""

from __future__ import annotations

import math
from pathlib import Path
from unittest.mock import Mock

from gpucourse.judge.client import Judge, JudgeAnswer
from gpucourse.judge.counterfactual import is_alike, sample, settle

JUDGE = """
from gpucourse.judge import Way

WAYS = {
    "doubled": Way("{given} is twice the side", ("a * a", "2 * a"), seen="a square of 3 has {given}"),
    "root": Way("that is the root", ("a * a", "a ** 0.5"), seen="it gave {given}"),
}


def judge(part):
    area = part.function("area")
    given = part.call(area, 3)
    if given == 6:
        raise part.wrong("doubled", "a square", output=[area(side) for side in range(5)], given=given)
    if given != 9:
        raise part.wrong("root", "a square", output=given, given=given)
"""


def lay_out(folder: Path, formula: str, solution: str | None = "a * a") -> tuple[Path, Path]:
    """Write a judge, a solution and a learner's file. Return the paths of the judge and of the learner's file."""
    text = "def area(a):\n    return {}\n"
    (folder / "judges").mkdir()
    (folder / "judges" / "my_area.py").write_text(JUDGE)
    if solution:
        (folder / "solutions").mkdir()
        (folder / "solutions" / "my_area.py").write_text(text.format(solution))
    (folder / "my_area.py").write_text(text.format(formula))
    return folder / "judges" / "my_area.py", folder / "my_area.py"


def ask(judge: Judge, folder: Path, formula: str, solution: str | None = "a * a") -> JudgeAnswer:
    return judge.judge(*lay_out(folder, formula, solution), torch=False, limit_s=20.0)


def test_settle_shows_a_cause_if_its_version_has_the_same_output(judge: Judge, tmp_path: Path) -> None:
    answer = ask(judge, tmp_path, "a + a")
    assert (answer.word, answer.way, answer.says) == ("failed", "doubled", "6 is twice the side")


def test_settle_shows_the_observation_if_the_cause_has_another_output(judge: Judge, tmp_path: Path) -> None:
    answer = ask(judge, tmp_path, "a + 3")
    assert (answer.word, answer.way, answer.says) == ("failed", "other", "a square of 3 has 6")


def test_settle_shows_the_observation_if_the_cause_has_another_verdict(judge: Judge, tmp_path: Path) -> None:
    assert ask(judge, tmp_path, "a * a if a < 3 else 1").says == "it gave 1"


def test_settle_shows_the_observation_if_there_is_no_solution(judge: Judge, tmp_path: Path) -> None:
    assert ask(judge, tmp_path, "a + a", solution=None).says == "a square of 3 has 6"


def test_settle_judges_nothing_again_if_the_file_is_the_version_of_the_cause(tmp_path: Path) -> None:
    judge_file, file = lay_out(tmp_path, "2 * a")
    suspicion = {"change": ("a * a", "2 * a"), "seen": "6", "output": 6}
    judge = Mock()
    answer = settle({"judge": str(judge_file), "file": str(file)}, {"way": "doubled", "suspicion": suspicion}, judge)
    assert answer == {"way": "doubled"}
    judge.assert_not_called()


def test_settle_ignores_a_malformed_suspicion() -> None:
    answer = settle({"judge": "j", "file": "f"}, {"way": "doubled", "says": "so", "suspicion": {"change": 3}}, lambda _: None)
    assert answer == {"way": "other", "says": "so"}


def test_sample_keeps_places_all_over_a_long_list() -> None:
    assert sample(list(range(1000))) == [1000, *range(0, 1000, 5)]
    assert sample({1: (math.nan, math.inf, None, True, {2})}) == {"1": ["nan", "inf", None, True, "{2}"]}


def test_is_alike_allows_for_another_order_of_sums() -> None:
    assert is_alike([1.0, 0.0, {"a": "nan"}], [1.00001, 1e-9, {"a": "nan"}])
    assert not is_alike([1.0], [1.01])
    assert not is_alike([1.0], [1.0, 2.0])
