"""What the failure table tells people to type can be typed, and following it never ends where it began."""

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
_AGAIN = "type the command again"
CALLS = {  # what a command of a cure asks of AWS that was not asked before
    "doctor --target aws --request-quota": ("servicequotas:RequestServiceQuotaIncrease",),
    "leaks --clean": ("ec2:DescribeInstances", "ec2:TerminateInstances", "ec2:DeleteVpc"),
}
REFUSALS = {  # how AWS may refuse such a call (the service's model has these), beside what every call may meet
    "servicequotas:RequestServiceQuotaIncrease": (
        "DependencyAccessDeniedException",
        "QuotaExceededException",
        "ResourceAlreadyExistsException",
        "AccessDeniedException",
        "IllegalArgumentException",
        "TooManyRequestsException",
    ),
    "ec2:DescribeInstances": ("UnauthorizedOperation", "RequestLimitExceeded"),
    "ec2:TerminateInstances": ("UnauthorizedOperation", "InvalidInstanceID.NotFound"),
    "ec2:DeleteVpc": ("DependencyViolation", "UnauthorizedOperation"),
}


def commands(cure: str) -> list[str]:
    """The gpucourse commands of a cure, as they are typed."""
    return [match.strip() for match in _COMMAND.findall(cure)]


def refusals(command: str) -> list[tuple[str, str]]:
    """What may go wrong with a command of a cure: call and code."""
    calls = next((calls for name, calls in CALLS.items() if command.startswith(name)), ())
    return [(call, code) for call in calls for code in REFUSALS[call]]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.codes[0])
def test_the_commands_of_a_cure_can_be_typed(row: FailureRow) -> None:
    for command in commands(row.cure):
        try:
            check_command(shlex.split(command.split("  ")[0].removesuffix(" prints it")))
        except typer.Exit:
            continue


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.codes[0])
def test_no_cure_leads_in_a_circle(row: FailureRow) -> None:
    """From cure to command to the next refusal and its cure: none is met twice."""

    def follow(cure: str, before: tuple[str, ...]) -> None:
        for command in commands(cure):
            assert command not in before, " -> ".join((*before, command))
            for call, code in refusals(command):
                follow(classify(code, call=call).cure, (*before, command))

    follow(row.cure, ())


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.codes[0])
def test_whoever_is_told_to_type_it_again_is_told_what_changed_meanwhile(row: FailureRow) -> None:
    """The same command alone is a cure only where AWS's answer may be another one the next time."""
    if row.cure == _AGAIN:
        assert row.kind == "gone"


@pytest.mark.parametrize(
    ("action", "by_policy"),
    [
        ("ec2:RunInstances", True),
        ("elasticfilesystem:CreateMountTarget", True),
        ("iam:CreateRole", False),
        ("s3:GetObject", False),
    ],
)
def test_the_policy_cures_only_what_it_allows(action: str, by_policy: bool) -> None:
    """Who has the policy and is refused what it does not allow would be told to attach it, for ever."""
    words = f"User: arn:aws:iam::1:user/ada is not authorized to perform: {action} on resource: *"
    assert policy.names(action) is by_policy
    for failure in (classify("AccessDenied", words), classify("UnauthorizedOperation", "no", action)):
        assert ("doctor --policy" in failure.cure) is by_policy
        assert (failure.cure == failure_table.ADMINISTRATOR) is not by_policy
    assert ("where this identity has it already" in classify("AccessDenied", words).cure) is by_policy


def test_each_role_of_first_use_is_cured_by_the_command_that_makes_it() -> None:
    made = {
        match for row in ROWS for match in re.findall(r"create-service-linked-role --aws-service-name (\S+?)(?:;|$)", row.cure)
    }
    assert made == {"spot.amazonaws.com", "elasticfilesystem.amazonaws.com", "servicequotas.amazonaws.com"}
    assert {row.lacks for row in ROWS if "create-service-linked-role" in row.cure} == {"iam:CreateServiceLinkedRole"}
