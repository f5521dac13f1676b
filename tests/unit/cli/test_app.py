"""The tree of commands: one file for each, named as it is typed."""

from __future__ import annotations

import pytest

from gpucourse.cli.app import name_in_python, spell_numbers, tree
from gpucourse.cli.help import COMMANDS


@pytest.mark.parametrize(
    ("command", "name"), [("allow-ip", "allow_ip"), ("break", "break_"), ("list", "list_"), ("status", "status")]
)
def test_name_in_python_is_not_a_keyword_of_python(command: str, name: str) -> None:
    assert name_in_python(command) == name


@pytest.mark.parametrize(("names", "count"), [("status", 1), ("stauts", len(COMMANDS)), (None, len(COMMANDS))])
def test_tree_builds_only_the_command_that_was_typed(names: str | None, count: int) -> None:
    assert len(tree(names).registered_commands) == count


def test_spell_numbers_changes_neither_arguments_of_a_script_nor_letters_that_name_a_run() -> None:
    options = {"exercise": "b.2", "module": "b", "runs": ["b.1", "a", "b"], "part": "b", "script": None}
    assert spell_numbers(options) == {"exercise": "B.2", "module": "B", "runs": ["B.1", "a", "b"], "part": "b", "script": None}
    for option in ("script", "python_module"):
        assert spell_numbers({"exercise": "a", option: "train"}) == {"exercise": "a", option: "train"}
