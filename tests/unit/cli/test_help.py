"""Help fits 80 columns and hides nothing; for a misspelt word, the intended word is suggested."""

from __future__ import annotations

import pytest

from gpucourse.cli.help import COMMANDS, GROUPS
from tests.learning import Learning


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_help_shows_every_command_in_its_group(learning: Learning) -> None:
    output = learning.types("--help").out
    places = [output.index(f"\n{title}:\n") for title in GROUPS]
    assert places == sorted(places)
    for name in COMMANDS:
        row = next(line for line in output.splitlines() if line.startswith(f"  {name} "))
        assert row.endswith("."), f"the summary of {name} goes on in the next line: {row}"
    assert max(map(len, output.splitlines())) <= 80
    assert "..." not in output.partition("\nLearn:\n")[2]
    assert "Start with: gpucourse next" in output


def test_help_of_every_command_names_the_common_options(learning: Learning) -> None:
    for name in COMMANDS:
        output = learning.types(name, "--help").out
        assert all(option in output for option in ("--workspace DIR", "--quiet", "--verbose")), name
    assert learning.types("help", "show").out == learning.types("show", "--help").out
    assert learning.types("help").out == learning.types("--help").out


def test_help_is_printed_without_arguments(learning: Learning) -> None:
    message = learning.types(code=2).err
    assert message.rstrip().endswith("gpucourse help run")
    assert message.strip() == learning.types("--help").out.strip()


def test_help_names_the_deploy_on_aws_for_a_gpu_without_a_lab(learning: Learning) -> None:
    assert "gpucourse deploy 1 --target aws --gpu t4" in learning.types("run", "1.1", "--gpu", "T4", code=3).err
