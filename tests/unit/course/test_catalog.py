"""Look-ups in a course: order, lazy reading, unknown names, an invalid module beside valid ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import CourseFolders
from gpucourse.errors import ManifestError, MissingError, UnknownName, UsageError


def test_load_puts_modules_in_the_order_of_their_numbers_and_the_bonus_last(course: Any) -> None:
    course.another("10", name="oceans")
    course.another("B", name="clouds")
    course.another("0", name="springs")
    assert [module.id for module in course.load().modules] == ["0", "7", "10", "B"]
    assert course.load().module_ids == ("0", "7", "10", "B")


def test_load_with_a_broken_module_has_the_others(course: Any) -> None:
    course.another("8", spoil=lambda text: text.replace("kind: torchrun", "kind: torchurn"))
    course.another("9", spoil=lambda _: "")
    catalog = course.load()
    assert [module.id for module in catalog.modules] == ["7"]
    assert [error.complaints[0].split(":")[0] for error in catalog.errors] == [
        "modules/08-lakes/module.yaml",
        "modules/09-lakes/module.yaml",
    ]
    with pytest.raises(ManifestError, match="torchurn"):
        catalog.module("8")
    assert catalog.module("7").title == "Rivers"


def test_module_reads_only_its_own_manifest_and_once(course: Any) -> None:
    course.another("8")
    catalog = course.load()
    assert catalog.module_ids == ("7", "8")
    rivers, lakes = (course.root / "modules" / name / "module.yaml" for name in ("07-rivers", "08-lakes"))
    rivers.write_text(rivers.read_text().replace("title: Rivers", "title: Streams"))
    assert catalog.module("7").title == "Streams", "it was not read before"
    rivers.unlink()
    lakes.write_text(lakes.read_text().replace("title: ", "title: More "))
    assert catalog.module("7").title == "Streams", "it was not read again"
    assert catalog.module("8").title.startswith("More "), "it was not read with the other"


def test_sources_of_an_exercise_are_all_files_that_are_uploaded(course: Any) -> None:
    catalog = course.load()
    module, exercise = catalog.exercise("7.1")
    assert (module.id, exercise.title) == ("7", "Source")
    assert catalog.folder_name(module) == "07-rivers"
    assert catalog.sources(exercise) == {"source.py": "07-rivers/source.py", "helper.py": "shared/helper.py"}
    assert exercise.launch.timeout == 600.0


def test_lesson_in_parts_is_joined(course: Any) -> None:
    course.put("modules/07-rivers/lesson-2.md", "# Mouths\n")
    course.change("hours: 1.5", "hours: 1.5\nfurther_lessons: [lesson-2.md]")
    catalog = course.load()
    module = catalog.module("7")
    assert catalog.lesson_parts(module) == ("# Rivers\n", "# Mouths\n")


def test_sources_prefer_a_file_beside_the_script(course: Any) -> None:
    course.put("exercises/07-rivers/helper.py", "")
    catalog = course.load()
    assert catalog.sources(catalog.exercise("7.1")[1])["helper.py"] == "07-rivers/helper.py"


def test_sources_of_a_folder_are_all_files_in_it(course: Any) -> None:
    course.put("exercises/shared/device/__init__.py", "")
    course.put("exercises/shared/device/parts/device.hpp", "")
    course.put("exercises/shared/device/__pycache__/device.cpython-311.pyc", "")
    course.change("files: [helper.py]", "files: [device]")
    catalog = course.load()
    assert catalog.sources(catalog.exercise("7.1")[1]) == {
        "source.py": "07-rivers/source.py",
        "device/__init__.py": "shared/device/__init__.py",
        "device/parts/device.hpp": "shared/device/parts/device.hpp",
    }


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("77", "there is no module '77'. Did you mean 7?"),
        ("07", "there is no module '07'. Did you mean 7?"),
        ("../7", "there is no module '../7'"),
    ],
)
def test_module_that_is_unknown_suggests_the_similar_one(course: Any, question: str, message: str) -> None:
    with pytest.raises(UnknownName) as caught:
        course.load().module(question)
    assert str(caught.value) == message
    assert caught.value.hint == "known: 7"


def test_module_with_the_number_of_an_exercise_is_refused_and_the_other_way_round(course: Any) -> None:
    with pytest.raises(UsageError, match=r"7\.1 looks like the number of an exercise, not of a module") as caught:
        course.load().module("7.1")
    assert caught.value.hint == "its module is 7"
    with pytest.raises(UsageError, match="7 is a module, not an exercise") as mistaken:
        course.load().exercise("7")
    assert mistaken.value.hint == "its exercises: 7.1"


def test_load_refuses_two_folders_with_one_number(course: Any) -> None:
    course.another("7")
    with pytest.raises(ManifestError, match="07-lakes and 07-rivers are both module 7"):
        course.load().module("7")


def test_load_of_a_folder_without_a_number_is_an_error(course: Any) -> None:
    course.put("modules/notes/module.yaml", "a: b\n")
    catalog = course.load()
    assert [module.id for module in catalog.modules] == ["7"]
    assert "the folder notes is not named like 03-parallel-computing" in str(catalog.errors[0])


def test_load_ignores_hidden_folders_and_files(course: Any) -> None:
    course.put("modules/.git/config", "")
    course.put("modules/__pycache__/x", "")
    course.put("modules/module.schema.json", "{}")
    assert course.load().errors == ()


def test_read_module_with_an_unreadable_manifest_is_a_complaint(course: Any) -> None:
    course.manifest.unlink()
    course.manifest.mkdir()
    with pytest.raises(ManifestError, match=r"cannot be read: module\.yaml is a folder"):
        course.load().module("7")


def test_load_without_modules_is_empty(tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        load(CourseFolders(tmp_path / "modules", tmp_path, tmp_path))
    (tmp_path / "modules").mkdir()
    catalog = load(CourseFolders(tmp_path / "modules", tmp_path, tmp_path))
    assert catalog.modules == ()
    with pytest.raises(UnknownName):
        catalog.exercise("3.2")
