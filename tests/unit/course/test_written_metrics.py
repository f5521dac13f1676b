"""What the manifest reads and no script writes; the rubric, the quiz and the solutions, as the author's lint sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpucourse.course.lint import lint
from gpucourse.course.schema import write_schema
from gpucourse.course.written_metrics import words_of

M = "modules/07-rivers/module.yaml: 7.1."
ASKED = "{id: why, text: Why does it run?}"


@pytest.fixture
def linted(course: Any) -> Any:
    write_schema(course.folders.modules)
    assert lint(course.load()) == []
    return course


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("value: metrics.wet,", "value: metrics.wett,", "checks.wet: no script of 7.1 writes wett, which metrics.wett needs"),
        ("min(metrics.springs.litres)", "min(metrics.springs.drops)", "checks.flows: no script of 7.1 writes drops"),
        ("{key: litres, title", "{key: drops, title", "tables.Springs: no script of 7.1 writes drops"),
        ("        x: day", "        x: night", "plots.flow: no script of 7.1 writes night"),
        (ASKED, "{id: why, text: t, kind: numeric, value: metrics.speed}", "questions.why: no script of 7.1 writes speed"),
    ],
)
def test_a_key_that_no_script_writes(linted: Any, old: str, new: str, said: str) -> None:
    linted.change(old, new)
    found = lint(linted.load())
    assert len(found) == 1, found
    assert found[0].startswith(M + said)


@pytest.mark.parametrize(
    "path", ["metrics.depth", "metrics.springs.0.litres", "plan.world_size", "metrics.slurm.jobs", "count(metrics.springs)"]
)
def test_keys_that_are_there_all_the_same(linted: Any, path: str) -> None:
    linted.change(ASKED, f"{{id: why, text: t, kind: numeric, value: {path}}}")
    assert lint(linted.load()) == []


def test_the_words_of_a_script(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "class Row:\n    field: int\n\nmetrics = dict(keyword=1)\nmetrics['quoted'] = 2\n"
        "name = 'x'\nmetrics[f'{name}_ms'] = 3\n"
        "print(f'{name}', f'took {name} ms')\n"
    )
    words = words_of([path, tmp_path / "gone.py"])
    for key in ("field", "keyword", "quoted", "median_ms"):
        assert key in words
    assert "anything" not in words


def test_the_same_hint_twice(linted: Any) -> None:
    linted.change("[Look up., Look down., Listen.]", "[Look up., Look up., Listen.]")
    assert lint(linted.load()) == [M + "hints: the same hint stands twice: Look up."]


def test_a_solution_of_nothing_and_one_that_solves_nothing(linted: Any) -> None:
    script = linted.root / "exercises/07-rivers/source.py"
    linted.put("exercises/07-rivers/solutions/source.py", script.read_text() + "\n# solved\n")
    assert lint(linted.load()) == []
    linted.put("exercises/07-rivers/solutions/source.py", script.read_text())
    linted.put("exercises/07-rivers/solutions/other.py", "")
    assert lint(linted.load()) == [
        "exercises/07-rivers/solutions/other.py: is the solution of no file that an exercise uses",
        "exercises/07-rivers/solutions/source.py: is the same as exercises/07-rivers/source.py, so there is nothing to solve",
    ]


RUBRIC = """\
format: 1
parts:
  - module: "7"
    title: t
    rows: [{id: r, title: t, points: 1, evidence: [checks], exercises: ["7.9"]}]
"""


def test_the_rubric_and_the_quiz(linted: Any) -> None:
    linted.put("modules/rubric.yaml", RUBRIC)
    assert lint(linted.load()) == ["modules/rubric.yaml: parts.7.r: there is no exercise 7.9"]
    linted.put("modules/rubric.yaml", RUBRIC.replace("points: 1", "points: none"))
    linted.put("modules/quiz.yaml", "format: 1\n")
    found = lint(linted.load())
    assert "modules/rubric.yaml: parts.0.rows.0.points: 'none' is not a number, line 5" in found
    assert any(line.startswith("modules/quiz.yaml: title: is missing") for line in found)


def test_two_folders_of_one_module(linted: Any) -> None:
    linted.another("7", name="again")
    assert "modules: 2 folders are module 7" in lint(linted.load())
