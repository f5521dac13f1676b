from __future__ import annotations

import pytest
import typer

from gpucourse.cli.app import tree
from gpucourse.cli.help import COMMANDS


def list_names(app: typer.Typer) -> list[str]:
    return [str(command.name) for command in app.registered_commands]


def test_tree_builds_a_named_command_alone_and_otherwise_all_of_them() -> None:
    assert list_names(tree("status")) == ["status"]
    assert list_names(tree("--help")) == list_names(tree("stauts")) == list_names(tree()) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_and_its_options_have_a_help(name: str) -> None:
    command = typer.main.get_command(tree(name)).commands[name]  # type: ignore[attr-defined]
    assert command.help
    for parameter in command.params:
        assert getattr(parameter, "help", "x"), f"{name} {parameter.name}"
