"""The command `deploy`: the arguments that it refuses, and a missing Terraform."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.cli.conftest import Answer

Type = Callable[..., Answer]


def test_deploy_without_terraform_names_the_missing_program(type_line: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCOURSE_TERRAFORM", "/nowhere/terraform")
    answer = type_line("deploy", "3")
    assert answer.code == 3
    assert "/nowhere/terraform" in answer.err
    assert "→" in answer.err


@pytest.mark.parametrize(
    ("line", "reason", "hint"),
    [
        ("deploy 33", "there is no module '33'", "known: "),
        ("deploy 3 --nodes 0", "--nodes 0: module 3 accepts 1 to 64 nodes", "gpucourse deploy 3 --nodes 2"),
        ("deploy 3 --nodes 65", "--nodes 65: module 3 accepts 1 to 64 nodes", "gpucourse deploy 3 --nodes 2"),
        ("deploy 3 --nodes two", "--nodes needs a whole number, not 'two'", "gpucourse deploy 3 --nodes 2"),
        ("deploy 3 --target moon", "'moon' is not", "gpucourse deploy --help"),
    ],
)
def test_deploy_refuses_wrong_arguments_with_what_to_type(type_line: Type, line: str, reason: str, hint: str) -> None:
    answer = type_line(*line.split())
    assert answer.code == 2
    assert reason in answer.err
    assert hint in answer.err.partition("→")[2]
