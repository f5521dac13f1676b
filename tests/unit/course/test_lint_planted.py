"""A mistake in any part of a course, and the sentence that `dev check` says about it: the place, and what to write instead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from gpucourse.course.catalog import load
from gpucourse.course.lint import lint
from gpucourse.course.locate import course_in
from gpucourse.course.new_course import start_course

MISTAKES = yaml.safe_load((Path(__file__).parents[2] / "data/manifests/planted.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def right_course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "course"
    start_course(folder)
    return folder


@pytest.fixture
def course(right_course: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(right_course, tmp_path / "course"))


def check(course: Path) -> list[str]:
    return lint(load(course_in(course, hint="")))


def test_lint_of_an_empty_course(tmp_path: Path) -> None:
    for part in ("modules", "exercises"):
        (tmp_path / part).mkdir()
    assert check(tmp_path) == ["modules: contains no module, which is a folder such as 01-name with a module.yaml"]


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake["says"].partition(": ")[2][:60] for mistake in MISTAKES])
def test_lint_names_a_planted_mistake(course: Path, mistake: dict[str, str]) -> None:
    file = course / mistake.get("file", "modules/01-rounding/module.yaml")
    if "old" in mistake:
        text = file.read_text(encoding="utf-8")
        assert text.count(mistake["old"]) == 1, "the words to change must stand there once"
        file.write_text(text.replace(mistake["old"], mistake["new"]), encoding="utf-8")
    elif "new" in mistake:
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(mistake["new"], encoding="utf-8")
    else:
        file.unlink()
    complaints = check(course)
    assert any(line.startswith(mistake["says"]) for line in complaints), complaints


def test_lint_names_an_exercise_without_a_check(course: Path) -> None:
    manifest = course / "modules/01-rounding/module.yaml"
    head, _, tail = manifest.read_text().partition("    checks:\n")
    manifest.write_text(
        head.replace("        checks: [pairs-lose-nothing]\n", "") + "    questions:\n" + tail.partition("    questions:\n")[2]
    )
    assert "modules/01-rounding/module.yaml: 1.1.checks: no check says what must hold after a run" in check(course)
