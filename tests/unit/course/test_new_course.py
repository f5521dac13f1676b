from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.course.new_course import HELPERS, start_course
from gpucourse.errors import UsageError


def test_start_course_returns_what_it_wrote_and_touches_no_folder_with_files(tmp_path: Path) -> None:
    files = start_course(tmp_path / "course")
    paths = {path.relative_to(tmp_path / "course").as_posix() for path in (tmp_path / "course").rglob("*") if path.is_file()}
    assert set(files) == paths >= {f"exercises/shared/{name}" for name in HELPERS}
    for folder, state in ((tmp_path, "already contains files"), (tmp_path / "course/modules/module.schema.json", "is a file")):
        with pytest.raises(UsageError, match=state):
            start_course(folder)
