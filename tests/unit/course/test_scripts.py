"""Keys that the manifest reads and no script writes, and complaints about the rubric, the quiz and the solutions."""

from __future__ import annotations

from typing import Any

import pytest

from gpucourse.course.lint import lint

M = "modules/07-rivers/module.yaml: 7.1."
ASKED = "{id: why, text: Why does it run?}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value: metrics.wet,", "value: metrics.wett,", "checks.wet: no script of 7.1 writes wett, which metrics.wett needs"),
        ("min(metrics.springs.litres)", "min(metrics.springs.drops)", "checks.flows: no script of 7.1 writes drops"),
        ("{key: litres, title", "{key: drops, title", "tables.Springs: no script of 7.1 writes drops"),
        ("        x: day", "        x: night", "plots.flow: no script of 7.1 writes night"),
        (ASKED, "{id: why, text: t, kind: numeric, value: metrics.speed}", "questions.why: no script of 7.1 writes speed"),
    ],
)
def test_find_unwritten_names_a_key_that_no_script_writes(clean_course: Any, old: str, new: str, message: str) -> None:
    clean_course.change(old, new)
    complaints = lint(clean_course.load())
    assert len(complaints) == 1, complaints
    assert complaints[0].startswith(M + message)


@pytest.mark.parametrize(
    "path", ["metrics.depth", "metrics.springs.0.litres", "plan.world_size", "metrics.slurm.jobs", "count(metrics.springs)"]
)
def test_find_unwritten_accepts_keys_that_the_program_writes(clean_course: Any, path: str) -> None:
    clean_course.change(ASKED, f"{{id: why, text: t, kind: numeric, value: {path}}}")
    assert lint(clean_course.load()) == []


def test_check_scripts_names_a_solution_of_nothing_and_one_that_solves_nothing(clean_course: Any) -> None:
    script = clean_course.root / "exercises/07-rivers/source.py"
    clean_course.put("exercises/07-rivers/solutions/source.py", script.read_text() + "\n# solved\n")
    assert lint(clean_course.load()) == []
    clean_course.put("exercises/07-rivers/solutions/source.py", script.read_text())
    clean_course.put("exercises/07-rivers/solutions/other.py", "")
    assert lint(clean_course.load()) == [
        "exercises/07-rivers/solutions/other.py: no exercise uses a file of this name",
        "exercises/07-rivers/solutions/source.py: is the same as exercises/07-rivers/source.py, so there is nothing to solve",
    ]


def test_scripts_and_lint_name_mistakes_of_the_rubric_and_the_quiz(clean_course: Any) -> None:
    clean_course.put("modules/rubric.yaml", "format: 1\nparts: none\n")
    clean_course.put("modules/quiz.yaml", "format: 1\n")
    complaints = lint(clean_course.load())
    assert "modules/rubric.yaml: parts: 'none' is not a list, line 2" in complaints
    assert any(line.startswith("modules/quiz.yaml: title: is missing") for line in complaints)
