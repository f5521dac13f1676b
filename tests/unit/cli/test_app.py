from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from gpucourse.cli.app import tree
from gpucourse.cli.help import COMMANDS


def names(app: typer.Typer) -> list[str]:
    return [str(command.name) for command in app.registered_commands]


def test_a_named_command_is_built_alone_and_anything_else_gets_them_all() -> None:
    assert names(tree("status")) == ["status"]
    assert names(tree("--help")) == names(tree("stauts")) == names(tree()) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does(name: str) -> None:
    command = typer.main.get_command(tree(name)).commands[name]  # type: ignore[attr-defined]
    assert command.help
    for parameter in command.params:
        assert getattr(parameter, "help", "x"), f"{name} {parameter.name}"


@pytest.mark.parametrize(
    ("words", "offered"),
    [("gpucourse run 3.", {"3.1", "3.2"}), ("gpucourse deploy ", {"3"}), ("gpucourse show 3", {"3", "3.1", "3.2"})],
)
def test_the_shell_completes_numbers(words: str, offered: set[str], tmp_path: Path) -> None:
    asked = {"_GPUCOURSE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"}
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GPUCOURSE_WORKSPACE": str(tmp_path / "w"), **asked}
    done = subprocess.run([sys.executable, "-m", "gpucourse"], env=environ, capture_output=True, text=True, check=False)
    assert offered <= set(done.stdout.split()), done.stderr
