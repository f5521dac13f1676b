"""The files of a part: what an author has left out, and learners' files that equal a solution except for comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.course.part_files import find_gaps, is_solution

BASH = '#!/bin/bash\n#SBATCH --partition=gpu\n. setup.sh\na=1\nb=2\nc="$a # $b"\nrun "$c"\n'
CUDA = "#include <math.h>\nvoid f() {\n  int a = 1;\n  int b = 2; // two\n  /* both\n  */ g(a, b);\n  h(b);\n}\n"
YAML = "pods:\n  - a: 1\n    b: 2\n    c: 3\n    d: 4\n"
PYTHON = '"""A way."""\n\n\ndef f(a):\n    """Return."""\n    b = a + 1\n    c = b + 1\n    d = c + 1\n    return d\n'
MINE = {
    ".sbatch": "#!/bin/bash\n\n# mine\n. setup.sh\na=1\nb=2  # two\n" + BASH[-len('c="$a # $b"\nrun "$c"\n') :],
    ".cu": CUDA.replace("// two", "").replace("both\n", "").replace("int a", "int  a") + "/* open at the end",
    ".yaml": "# mine\n\n" + YAML.replace("b: 2", "b: 2 # two"),
    ".py": PYTHON.replace("A way.", "Mine.").replace("a + 1", "(a + 1)  # more").replace('"""Return."""', ""),
}
SOLUTIONS = {".sbatch": BASH, ".cu": CUDA, ".yaml": YAML, ".py": PYTHON}


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("gpucourse.course.part_files.MAX_EQUAL_CHARACTERS", 17)  # so that short texts are enough
    (tmp_path / "solutions/other").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    return tmp_path


def ask(course: Path, ending: str, text: str, *, delivered: str = "") -> bool:
    name = f"my_part{ending}"
    course.joinpath(name).write_text(delivered)
    course.joinpath("solutions", name).write_text(SOLUTIONS[ending])
    course.joinpath("mine", name).write_text(text)
    return is_solution(course / "mine" / name, course / name)


@pytest.mark.parametrize("ending", MINE)
def test_is_solution_with_other_comments_and_blanks_is_true(course: Path, ending: str) -> None:
    assert ask(course, ending, MINE[ending])


@pytest.mark.parametrize("ending", MINE)
def test_is_solution_with_another_number_is_false(course: Path, ending: str) -> None:
    assert not ask(course, ending, MINE[ending].replace("1", "3"))


def test_is_solution_with_few_characters_beyond_the_delivered_file_is_false(course: Path) -> None:
    assert not ask(course, ".py", PYTHON, delivered="def f(a):\n    b = a + 1\n    raise NotImplementedError\n")
    assert ask(course, ".py", PYTHON, delivered="def f(a):\n    raise NotImplementedError\n")


@pytest.mark.parametrize(
    "text",
    ["-" * 60_000 + "1", "(" * 60_000, "a" + ".b" * 30_000, "def f(:", "'\\d'\n" * 50, "\0"],
)
def test_is_solution_with_text_that_is_hard_to_read_is_false(course: Path, text: str) -> None:
    assert not ask(course, ".py", text)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + PYTHON,
        "# coding: latin-1\n" + PYTHON,
        PYTHON + "# more\n" * 20_000,
        PYTHON.replace("A way.", "x" * (1 << 17)),
    ],
    ids=["mark", "coding", "comments", "docstring"],
)
def test_is_solution_with_python_in_another_form_is_true(course: Path, text: str) -> None:
    assert ask(course, ".py", text)


def test_is_solution_with_blanks_elsewhere_in_a_line_is_true(course: Path) -> None:
    assert ask(course, ".cu", CUDA.replace("a = 1", "a=1").replace(";\n", ";").replace("{", "\n{"))


def test_is_solution_with_one_statement_over_many_lines_counts_them(course: Path) -> None:
    one_statement = "def f(a):\n    return {\n        1: a,\n        2: a + 1,\n        3: a + 2,\n    }\n"
    course.joinpath("solutions/other/my_part.py").write_text(one_statement)
    assert ask(course, ".py", one_statement, delivered="def f(a):\n    raise NotImplementedError\n")


def test_is_solution_with_comments_that_never_end_is_quick(course: Path) -> None:
    assert not ask(course, ".cu", "/*" * 30_000)
    assert not ask(course, ".sbatch", " #" * 30_000)


JUDGE = """
from gpucourse.judge import Way

WAYS = {
    "one": Way("it adds two", ("a + 1", "a + 2")),
    "two": Way("it adds none", ("b + 1", "b")),
    "three": Way("it adds three", change=("c + 1", "c + 3")),
}


def judge(part):
    raise part.wrong("one") or part.wrong("two") or part.wrong("three")
"""


@pytest.mark.parametrize(
    ("name", "old", "new", "gap"),
    [
        ("judges/my_part.py", "", "", ""),
        ("solutions/other/my_part.py", "# other\n", "", "other/my_part.py is the same as the first solution"),
        ("judges/my_part.py", "WAYS = {", "WAYS = {1:", "judges/my_part.py: invalid syntax"),
        ("judges/my_part.py", "WAYS", "KNOWN", "judges/my_part.py: has no dictionary WAYS that is a literal"),
        (
            "judges/my_part.py",
            '("b + 1", "b")',
            '"b"',
            "judges/my_part.py: way two: its change is not two literal texts, old and new",
        ),
        (
            "judges/my_part.py",
            '"two": Way("it adds none", ("b + 1", "b")),',
            "",
            "its judge recognises too few wrong ways: 2, but",
        ),
        ("judges/my_part.py", '("b + 1", "b")', '("+ 1", "")', "way two: the text that it changes occurs 3 times"),
    ],
)
def test_find_gaps_names_what_an_author_got_wrong(course: Path, name: str, old: str, new: str, gap: str) -> None:
    (course / "judges").mkdir()
    texts = {"my_part.py": "", "solutions/my_part.py": PYTHON, "solutions/other/my_part.py": "# other\n" + PYTHON}
    for file, text in {**texts, "judges/my_part.py": JUDGE}.items():
        course.joinpath(file).write_text(text.replace(old, new) if file == name else text)
    gaps = list(find_gaps(course / "my_part.py", course / "judges/my_part.py"))
    assert any(line.startswith(gap) for line in gaps) if gap else gaps == []
