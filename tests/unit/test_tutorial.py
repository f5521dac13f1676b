"""The tutorial for authors: its files are those of the template, and its commands print what stands below them."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs import screens

from gpucourse.course.locate import find_template

PAGE = screens.PAGES / "authoring.md"
COURSE = "halves"


def read_files(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def test_files_of_the_tutorial_are_the_template(tmp_path: Path) -> None:
    for block in screens.BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if block["file"] and block["file"].startswith(f"{COURSE}/"):
            screens.write_block(tmp_path / block["file"], block["body"])
    assert read_files(tmp_path / COURSE) == read_files(find_template())


@pytest.mark.slow
@pytest.mark.system
def test_every_screen_of_the_tutorial() -> None:
    """From the empty folder to the points, in a terminal; `make docs` does the same with every page."""
    assert screens.renew(PAGE)[1] == []
