"""The README's picture is today's screen. Its headings are compared with a real run in tests/system/test_whole_run.py."""

from __future__ import annotations

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests import readme_picture
from tests.readme_picture import PICTURE

SVG = PICTURE.read_text(encoding="utf-8")
EXERCISE = load(find_course({})).exercise(readme_picture.EXERCISE)[1]
ANEW = "take it again: make picture"


def test_it_shows_the_command_and_the_exercise() -> None:
    title, command, *rest = readme_picture.lines(SVG)
    assert (title, command) == (f"{EXERCISE.id} {EXERCISE.title} · mode: local", "$ gpucourse run 3.2 --nodes 2"), ANEW
    assert f"{EXERCISE.id} {EXERCISE.title}" in rest, ANEW


def test_it_counts_every_check_of_today() -> None:
    assert readme_picture.count_checks(SVG) == len(EXERCISE.checks), ANEW


def test_it_shows_the_main_table_of_today() -> None:
    assert EXERCISE.main_table is not None
    assert EXERCISE.main_table.title in readme_picture.lines(SVG), ANEW


def test_it_shows_no_path_of_a_machine() -> None:
    assert readme_picture.foreign_paths(SVG) == []
    assert readme_picture.SHOWN in SVG
    planted = SVG.replace(readme_picture.SHOWN, "/opt/somebody/gpucourse")
    assert readme_picture.foreign_paths(planted), "else the first line could not fail"


def test_the_readme_names_the_command_that_takes_it() -> None:
    readme = (PICTURE.parents[2] / "README.md").read_text(encoding="utf-8")
    assert "![gpucourse run 3.2 --nodes 2](docs/images/run.svg)" in readme
    assert "`make picture`" in readme
