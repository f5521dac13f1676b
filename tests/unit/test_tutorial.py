"""The tutorial for authors, word for word: its files are those of the template, its commands print what stands below them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs import screens

from gpucourse.cli.boundary import run_command
from gpucourse.course.locate import find_template

PAGE = screens.PAGES / "authoring.md"
COURSE = "halves"


def split_screens(body: str) -> list[tuple[str, str]]:
    """The commands of a block, and what the page shows below each."""
    shown = re.split(r"^\$ .*\n", body, flags=re.MULTILINE)[1:]
    return list(zip(screens.list_commands(body), shown, strict=True))


def test_its_checks_and_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Every file is written, and every `dev check` typed, at its place; the last one has nothing to say."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GPUCOURSE_COURSE", str(tmp_path / COURSE))
    checked = []
    for block in screens.BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if block["file"] and block["file"].startswith(f"{COURSE}/"):
            screens.write_block(tmp_path / block["file"], block["body"])
        for command, shown in split_screens(block["body"]) if not block["file"] else ():
            for folder in command.split()[2:] if command.startswith("mkdir -p ") else ():
                (tmp_path / folder).mkdir(parents=True)
            if command == "gpucourse dev check":
                capfd.readouterr()
                run_command(["dev", "check"])
                said = "".join(capfd.readouterr()).replace(str(tmp_path), screens.HOME)
                assert "".join(said.split()) == "".join(shown.split())
                checked.append(said)
    assert "no complaints" in checked[-1]
    assert read_files(tmp_path / COURSE) == read_files(find_template())


def read_files(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


@pytest.mark.slow
@pytest.mark.system
def test_every_screen_of_the_tutorial() -> None:
    """From the empty folder to the points, in a terminal; `make docs` does the same with every page."""
    assert screens.renew(PAGE)[1] == []
