"""Part: how a judge file calls a learner's functions, compares their results, and names the wrong way."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gpucourse.judge import Case, Part, Verdict, Way, plant_ways

RIGHT = "def answer(n):\n    return n + 1\n"


def make_part(folder: Path, text: str, **options: Any) -> Part:
    (folder / "my_part.py").write_bytes(text.encode())
    return Part(folder / "my_part.py", **options)


def test_compare_asks_for_the_return_only_if_nothing_is_ever_returned() -> None:
    part = Part(Path("my_part.py"))
    with pytest.raises(Verdict) as verdict:
        part.compare([Case("n = 1", 1, 1), Case("n = 2", None, 2)])
    assert (verdict.value.way, verdict.value.says) == ("other", "the result is None instead of 2")
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
    assert verdict.value.says == "the result is 3 instead of 2. With eps = 1e-08 or with n = 1 it is right"


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


def test_call_returns_what_the_function_of_the_learner_returns(tmp_path: Path) -> None:
    part = make_part(tmp_path, "\ufeff" + RIGHT.replace("\n", "\r\n"))
    assert part.call(part.function("answer"), n=1) == 2


@pytest.mark.parametrize(
    ("text", "word", "way", "message"),
    [
        ("def answer(n):\n    raise NotImplementedError('how?')\n", "open", "", "how?"),
        ("def answer(n):\n    exit(3)\n", "failed", "exit", "my_part.py:2: it ended the program (exit 3): return instead"),
        ("def anwser(n):\n    return 2\n", "failed", "no-function", "it has anwser: keep its name"),
        ("def answer(n)\n    return 2\n", "failed", "not-python", "my_part.py:1: expected ':'"),
        ("def answer(n):\n    return '\0'\n", "failed", "not-text", "save it again as UTF-8"),
        ("import numpie\n\n\n" + RIGHT, "failed", "no-library", "my_part.py:1: it imports numpie, which is missing"),
        ("def answer(n):\n    raise MemoryError\n", "failed", "memory", "my_part.py:2: it asked for more memory"),
        ("def answer(n):\n    return 1 / (n - 1)\n", "failed", "error", "my_part.py:2: ZeroDivisionError: division by zero"),
        (
            "class Odd(Exception):\n    def __str__(self): raise self\n\n\ndef answer(n):\n    raise Odd\n",
            "failed", "error", "my_part.py:6: Odd: ",
        ),
    ],
    ids=["open", "exit", "renamed", "syntax", "binary", "library", "memory", "error", "odd error"],
)  # fmt: skip
def test_make_verdict_names_the_line_and_what_went_wrong(tmp_path: Path, text: str, word: str, way: str, message: str) -> None:
    part = make_part(tmp_path, text)
    with pytest.raises(Verdict) as verdict:
        part.call(part.function("answer"), 1, case="n = 1")
    assert (verdict.value.word, verdict.value.way) == (word, way)
    assert message in verdict.value.says


def test_document_names_the_line_that_is_not_yaml(tmp_path: Path) -> None:
    assert make_part(tmp_path, "nodes: 2\n").document.data == {"nodes": 2}
    with pytest.raises(Verdict, match=r"my_part.py:2: .*twice"):
        _ = make_part(tmp_path, "nodes: 2\nnodes: 3\n").document


def test_function_alone_returns_one_function_of_a_script_that_cannot_be_imported(tmp_path: Path) -> None:
    part = make_part(tmp_path, f"import no_such_module\n\n\n@no_such_module.fast\n{RIGHT.replace('+ 1', '+ STEP')}")
    assert part.function_alone("answer", STEP=5)(1) == 6
    with pytest.raises(Verdict, match="has no function share: keep its name"):
        part.function_alone("share")


def test_refuse_other_course_files_names_the_line_that_imports_the_answer(tmp_path: Path) -> None:
    exercise = tmp_path / "exercises" / "01-course"
    exercise.mkdir(parents=True)
    for name, text in {"my_part": "import shapes\n", "shapes": "", "answers": ""}.items():
        (exercise / f"{name}.py").write_text(text)
    make_part(tmp_path, "import math\nimport shapes\n").refuse_other_course_files(exercise / "my_part.py")
    with pytest.raises(Verdict, match="2 imports answers, a file of the course") as verdict:
        make_part(tmp_path, "import shapes\nfrom answers import answer\n").refuse_other_course_files(exercise / "my_part.py")
    assert verdict.value.way == "course-file"


def test_plant_ways_yields_each_wrong_solution_if_there_is_a_solution(tmp_path: Path) -> None:
    judge, ways = str(tmp_path / "judges/my_part.py"), {"less": Way("", ("n + 1", "n - 1")), "same": Way("", ("n + 1", "n"))}
    assert list(plant_ways(ways, judge)) == []
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions/my_part.py").write_text(RIGHT)
    assert [(name, module.answer(5)) for name, module in plant_ways(ways, judge)] == [("less", 4), ("same", 5)]
