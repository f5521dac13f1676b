from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.cli.session import Options, split
from gpucourse.errors import UsageError


@pytest.mark.parametrize(
    ("line", "options", "words"),
    [
        (["status"], Options(), ["status"]),
        (["--quiet", "status", "--json"], Options(quiet=True, json=True), ["status", "--json"]),
        (["status", "--workspace", "a b", "-q"], Options(workspace=Path("a b"), quiet=True), ["status"]),
        (["--workspace=x=y", "list", "--verbose"], Options(workspace=Path("x=y"), verbose=True), ["list"]),
        (["run", "3.2", "--", "-q", "--json"], Options(passed_on=("-q", "--json")), ["run", "3.2", "--", "-q", "--json"]),
    ],
)
def test_split_finds_the_options_of_the_program_before_the_dashes(line: list[str], options: Options, words: list[str]) -> None:
    assert split(line) == (options, words)


def test_split_refuses_a_workspace_without_a_folder() -> None:
    with pytest.raises(UsageError, match="needs a folder"):
        split(["status", "--workspace"])
