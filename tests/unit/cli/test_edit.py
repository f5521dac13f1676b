"""The command `edit`: which editor opens which files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.learning import Learning
from tests.unit.learning.test_try import own, put_parts


@pytest.mark.parametrize(
    ("environ", "options", "started"),
    [
        ({"VISUAL": "true -v", "EDITOR": "false"}, "", "true -v my_double.py my_dry.py"),
        ({"VISUAL": " ", "EDITOR": "true"}, "--part dry", "true my_dry.py"),
        ({"PATH": "bin"}, "--part dry", "code my_dry.py"),
        ({"PATH": "nowhere"}, "", ""),
    ],
)
def test_edit_opens_the_parts_in_the_editor_of_the_person(
    learning: Learning, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], options: str, started: str
) -> None:
    put_parts(learning)
    learning.put("bin/code", "")
    (learning.course / "bin/code").chmod(0o755)
    monkeypatch.chdir(learning.course)
    for name, value in {"VISUAL": "", "EDITOR": "", **environ}.items():
        monkeypatch.setenv(name, value)
    calls: list[str] = []
    monkeypatch.setattr(os, "execv", lambda _program, words: calls.append(" ".join(Path(word).name for word in words)))
    monkeypatch.setattr("gpucourse.ui.out._is_terminal", lambda _stream: True)
    result = learning.types("edit", "1.2", *options.split(), typing="")
    assert calls == [started] * bool(started)
    assert str(own(learning, "my_dry.py")) in result.out
    assert ("No editor is set" in result.err) != bool(started)
    monkeypatch.setenv("VISUAL", "ed-9 -x")
    assert "ed-9, the editor in $VISUAL, is not installed" in learning.types("edit", "1.2", code=3, typing="").err


def test_edit_without_a_terminal_prints_the_paths_alone(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    put_parts(learning)
    monkeypatch.setenv("EDITOR", "true")
    assert learning.types("edit", "1.2").out == f"{own(learning)}\n{own(learning, 'my_dry.py')}\n"
    assert "there is no part 'wet'" in learning.types("edit", "1.2", "--part", "wet", code=2).err


@pytest.mark.parametrize(
    "words",
    ["edit 9.9", "hint 9.9", "try 9.9", "reset 9.9", "answer 9.9", "break 9.9", "watch 9.9", "run 9.9", "deploy 9", "quiz 9"],
)
def test_command_about_an_unknown_number_makes_no_workspace(
    learning: Learning, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("GPUCOURSE_WORKSPACE", str(learning.root / "new"))
    assert "there is no " in learning.types(*words.split(), code=None).err
    assert not (learning.root / "new").exists()
