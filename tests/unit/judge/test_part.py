"""Part: how a judge file compares what a learner's functions return, and names the wrong way."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from gpucourse.judge import Case, Part, Verdict, Way


def test_compare_asks_for_the_return_only_if_nothing_is_ever_returned() -> None:
    part = Part(Path("my_part.py"))
    with pytest.raises(Verdict) as verdict:
        part.compare([Case("n = 1", 1, 1), Case("n = 2", None, 2)])
    assert (verdict.value.way, verdict.value.says) == ("other", "it gave None; 2 is right")
    with pytest.raises(Verdict, match="is the return missing"):
        part.compare([Case("n = 1", None, 1), Case("n = 2", None, 2)])


def test_compare_shows_the_simplest_wrong_case_beside_a_right_one() -> None:
    part = Part(Path("my_part.py"), ways={"way": Way("{given}")})
    cases = [
        Case(f"n = {n}, eps = {eps:g}", n + (n > 1 and eps > 0.1), n, {"way": n + 2}, knobs={"n": n, "eps": eps})
        for n in (3, 2, 1)
        for eps in (0.5, 1e-8)
    ]
    with pytest.raises(Verdict) as verdict:
        part.compare(cases)
    assert (verdict.value.way, verdict.value.case) == ("other", "n = 2, eps = 0.5")
    assert verdict.value.says == "it gave 3; 2 is right. With eps = 1e-08 or with n = 1 it is right"


def test_trying_says_what_passed_before_unless_a_way_is_known() -> None:
    part = Part(Path("my_part.py"), ways={"way": Way("known"), "cause": Way("a cause", seen="seen")})
    verdicts = []
    for n, verdict in enumerate([None, Verdict("failed", "error", "it raised"), part.wrong("way"), part.wrong("cause")]):
        with suppress(Verdict), part.trying({"n": n}):
            if verdict:
                verdicts.append(verdict)
                raise verdict
    assert [verdict.says for verdict in verdicts] == ["it raised. With n = 0 it is right", "known", "a cause"]
    assert (verdicts[2].suspicion or {}).get("seen") == "seen. With n = 0 it is right"


@pytest.mark.parametrize("form", ["up", "down"])
def test_compare_names_a_way_in_each_of_its_forms(form: str) -> None:
    part = Part(Path("my_part.py"), ways={"way": Way("it gave {given}")})
    ways = {("way", "up"): 2, ("way", "down"): 0}
    with pytest.raises(Verdict) as verdict:
        part.compare([Case("one", ways["way", form], 1, ways)])
    assert (verdict.value.way, verdict.value.says) == ("way", f"it gave {ways['way', form]}")
