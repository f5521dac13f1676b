"""`dev check` and `dev new`: their messages for an author."""

from __future__ import annotations

from gpucourse.course.locate import find_course
from gpucourse.course.schema import SCHEMAS
from tests.learning import Learning


def test_check_course_of_a_new_course_has_no_complaints(learning: Learning) -> None:
    folder = learning.root / "my course"
    document = learning.types("dev", "new", str(folder), "--json").document
    assert document["folder"] == str(folder)
    assert document["files"] == sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert {f"modules/{name}" for name in SCHEMAS} < {*document["files"]}
    shared = find_course({}).exercises / "shared"
    assert (folder / "exercises/shared/ranks.py").read_bytes() == (shared / "ranks.py").read_bytes()
    assert "1 module, no complaints" in learning.types("dev", "check", str(folder)).err


def test_dev_new_names_the_next_command(learning: Learning) -> None:
    folder = learning.root / "my course"
    folder.mkdir()
    message = learning.types("dev", "new", str(folder)).err
    assert f"{folder}: a course of one module with one exercise" in " ".join(message.split())
    assert f"gpucourse dev check '{folder}' --run" in " ".join(message.split())


def test_dev_new_in_a_folder_with_files_changes_nothing(learning: Learning) -> None:
    old_paths = sorted(learning.course.rglob("*"))
    message = " ".join(learning.types("dev", "new", str(learning.course), code=2).err.split())
    assert f"{learning.course} already contains files, but a new course needs an empty folder" in message
    assert sorted(learning.course.rglob("*")) == old_paths
    assert "is a file" in learning.types("dev", "new", str(learning.course / "modules/rubric.yaml"), code=2).err
    assert "dev new needs a folder" in learning.types("dev", "new", code=2).err
