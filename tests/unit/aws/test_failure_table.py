"""The commands that the failure table tells people to type can be typed, and following them never ends where it began."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from gpucourse.aws import failure_table, policy
from gpucourse.aws.failure_table import ROWS, UNKNOWN, FailureRow
from gpucourse.aws.failures import classify
from tests.unit.test_documented_commands import check_command

TABLE = [*ROWS, UNKNOWN]
_COMMAND = re.compile(r"gpucourse ((?:doctor|leaks|deploy|destroy|cost)[^,;:()]*)")
CODES = {  # by the command of a cure: how AWS may refuse what it asks for, beside what every call may meet
    "doctor --target aws --request-quota": (
        "DependencyAccessDeniedException",
        "QuotaExceededException",
        "ResourceAlreadyExistsException",
        "AccessDeniedException",
        "IllegalArgumentException",
        "TooManyRequestsException",
    ),
    "leaks --clean": ("UnauthorizedOperation", "RequestLimitExceeded", "InvalidInstanceID.NotFound", "DependencyViolation"),
}


def list_commands(cure: str) -> list[str]:
    """The gpucourse commands of a cure, as they are typed."""
    return [match.strip() for match in _COMMAND.findall(cure)]


def test_cure_names_only_commands_that_can_be_typed() -> None:
    commands = {command for row in TABLE for command in list_commands(row.cure)}
    assert len(commands) > 5
    for command in sorted(commands):
        try:
            check_command(shlex.split(command.split("  ")[0].removesuffix(" prints it")))
        except typer.Exit:
            continue


@pytest.mark.parametrize("row", [row for row in TABLE if list_commands(row.cure)], ids=lambda row: row.codes[0])
def test_cure_leads_to_no_circle(row: FailureRow) -> None:
    """From cure to command to the next refusal and its cure: none is met twice."""

    def follow(cure: str, before: tuple[str, ...]) -> None:
        for command in list_commands(cure):
            assert command not in before, " -> ".join((*before, command))
            for code in next((codes for name, codes in CODES.items() if command.startswith(name)), ()):
                follow(classify(code).cure, (*before, command))

    follow(row.cure, ())


def test_cure_is_the_same_command_only_when_the_answer_may_be_another() -> None:
    assert {row.kind for row in TABLE if row.cure == "type the command again"} == {"gone"}


@pytest.mark.parametrize(
    ("action", "by_policy"),
    [
        ("ec2:RunInstances", True),
        ("elasticfilesystem:CreateMountTarget", True),
        ("iam:CreateRole", False),
        ("s3:GetObject", False),
    ],
)
def test_cure_is_the_policy_only_when_the_policy_allows_the_action(action: str, by_policy: bool) -> None:
    """Who has the policy and is refused what it does not allow would be told to attach it, for ever."""
    words = f"User: arn:aws:iam::1:user/ada is not authorized to perform: {action} on resource: *"
    assert policy.names(action) is by_policy
    for failure in (classify("AccessDenied", words), classify("UnauthorizedOperation", "no", action)):
        assert ("doctor --policy" in failure.cure) is by_policy
        assert (failure.cure == failure_table.ADMINISTRATOR) is not by_policy
    assert ("where this identity has it already" in classify("AccessDenied", words).cure) is by_policy
