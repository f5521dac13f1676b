from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import MissingError
from gpucourse.workspace.exercises import all_names, ensure_copies, restore
from gpucourse.workspace.paths import WorkspacePaths


@pytest.fixture
def course(tmp_path: Path) -> Path:
    folder = tmp_path / "course"
    for name in ("03-x/a.py", "03-x/b.py", "shared/bench.py", "03-x/solutions/a.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n")
    return folder


def test_all_names_has_no_solutions(course: Path) -> None:
    assert all_names(course) == ["03-x/a.py", "03-x/b.py", "shared/bench.py"]


def test_ensure_copies_renews_untouched_copies_and_keeps_edited_ones(tmp_path: Path, course: Path) -> None:
    paths = WorkspacePaths(tmp_path / "workspace")
    names = all_names(course)
    assert ensure_copies(paths, course, names) == []
    (paths.exercises / "03-x/a.py").write_text("# the learner's\n")
    (course / "03-x/a.py").write_text("# new a\n")
    (course / "03-x/b.py").write_text("# new b\n")
    assert ensure_copies(paths, course, names) == ["03-x/a.py"]
    assert (paths.exercises / "03-x/a.py").read_text() == "# the learner's\n"
    assert (paths.exercises / "03-x/b.py").read_text() == "# new b\n"


def test_ensure_copies_brings_a_deleted_copy_back(tmp_path: Path, course: Path) -> None:
    paths = WorkspacePaths(tmp_path / "workspace")
    ensure_copies(paths, course, ["03-x/a.py"])
    (paths.exercises / "03-x/a.py").unlink()
    ensure_copies(paths, course, ["03-x/a.py"])
    assert (paths.exercises / "03-x/a.py").read_text() == "# 03-x/a.py\n"


def test_ensure_copies_names_a_file_that_the_course_lost(tmp_path: Path, course: Path) -> None:
    with pytest.raises(MissingError, match=r"exercises/03-x/gone\.py"):
        ensure_copies(WorkspacePaths(tmp_path), course, ["03-x/gone.py"])


def test_restore_puts_files_of_the_course_back_and_keeps_those_of_the_learner(tmp_path: Path, course: Path) -> None:
    paths, names = WorkspacePaths(tmp_path / "workspace"), all_names(course)
    ensure_copies(paths, course, names)
    file, backup = paths.exercises / "03-x/a.py", paths.reset_backups / "now" / "03-x/a.py"
    file.write_text("# the learner's\n")
    (paths.exercises / "03-x/b.py").unlink()
    assert restore(paths, course, names, "now") == {"03-x/a.py": backup, "03-x/b.py": None}
    assert (file.read_text(), backup.read_text()) == ("# 03-x/a.py\n", "# the learner's\n")
    (course / "03-x/a.py").write_text("# new a\n")
    assert ensure_copies(paths, course, names) == []
    assert file.read_text() == "# new a\n", "the copy follows the course again"
