"""Finding the course in a checkout, in an installed package, and where an author says."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpucourse
from gpucourse.course.locate import find_course, find_named_course
from gpucourse.errors import MissingError


def make(root: Path, *parts: str) -> None:
    for part in parts:
        (root / part).mkdir(parents=True)


def test_find_course_in_a_checkout() -> None:
    folders = find_course({})
    root = Path(gpucourse.__file__).resolve().parents[2]
    assert (folders.modules, folders.exercises, folders.terraform) == (root / "modules", root / "exercises", root / "terraform")


def test_find_course_in_an_installed_package(tmp_path: Path) -> None:
    package = tmp_path / "site packages" / "gpucourse"
    make(package / "_course", "modules", "exercises", "terraform")
    (package / "__init__.py").touch()
    assert find_course({}, package).modules == package / "_course" / "modules"


def test_find_course_without_any_is_a_broken_installation(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "gpucourse"
    make(package / "_course", "modules", "exercises")
    with pytest.raises(MissingError, match="modules/, exercises/, terraform/") as caught:
        find_course({}, package)
    assert "pip install" in caught.value.hint


def test_find_course_that_an_author_names(tmp_path: Path) -> None:
    make(tmp_path, "modules", "exercises")
    folders = find_course({"GPUCOURSE_COURSE": str(tmp_path)})
    assert (folders.modules, folders.exercises) == (tmp_path / "modules", tmp_path / "exercises")
    assert folders.terraform == find_course({}).terraform
    make(tmp_path, "terraform")
    assert find_course({"GPUCOURSE_COURSE": str(tmp_path)}).terraform == tmp_path / "terraform"


def test_course_in_a_wrong_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="which has no folder modules/") as caught:
        find_course({"GPUCOURSE_COURSE": str(tmp_path)})
    assert "GPUCOURSE_COURSE" in caught.value.hint


def test_find_course_with_an_empty_name_is_the_built_in_one() -> None:
    assert find_course({"GPUCOURSE_COURSE": ""}) == find_course({})


def test_find_named_course_is_none_for_the_built_in_one(tmp_path: Path) -> None:
    assert find_named_course({}) is None
    assert find_named_course({"GPUCOURSE_COURSE": str(find_course({}).modules.parent)}) is None
    assert find_named_course({"GPUCOURSE_COURSE": str(tmp_path)}) == tmp_path
