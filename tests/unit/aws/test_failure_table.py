"""The commands in the failure table can be typed."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from gpucourse.aws import failure_table, policy
from gpucourse.aws.failure_table import ROWS, UNKNOWN
from gpucourse.aws.failures import classify
from tests.unit.test_documented_commands import check_command

TABLE = [*ROWS, UNKNOWN]
_COMMAND = re.compile(r"gpucourse ((?:doctor|leaks|deploy|destroy|cost)[^,;:()]*)")


def list_commands(remedy: str) -> list[str]:
    """Return the gpucourse commands of a remedy, as they are typed."""
    return [match.strip() for match in _COMMAND.findall(remedy)]


def test_remedy_names_only_commands_that_can_be_typed() -> None:
    commands = {command for row in TABLE for command in list_commands(row.remedy)}
    assert len(commands) > 5
    for command in sorted(commands):
        try:
            check_command(shlex.split(command.split("  ")[0].removesuffix(" prints it")))
        except typer.Exit:
            continue


@pytest.mark.parametrize(
    ("action", "by_policy"),
    [
        ("ec2:RunInstances", True),
        ("elasticfilesystem:CreateMountTarget", True),
        ("iam:CreateRole", False),
        ("s3:GetObject", False),
    ],
)
def test_remedy_is_the_policy_only_when_the_policy_allows_the_action(action: str, by_policy: bool) -> None:
    """Classify a refusal. A user who has the policy must not be told to attach it again if it does not allow the action."""
    words = f"User: arn:aws:iam::1:user/ada is not authorized to perform: {action} on resource: *"
    assert policy.allows(action) is by_policy
    for failure in (classify("AccessDenied", words), classify("UnauthorizedOperation", "no", action)):
        assert ("doctor --policy" in failure.remedy) is by_policy
        assert (failure.remedy == failure_table.ADMINISTRATOR) is not by_policy
    assert ("if this identity already has it" in classify("AccessDenied", words).remedy) is by_policy
