"""Whether the policy allows what was done: every call of ours and of Terraform's provider that reached the account."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tests.mock_aws.account import Account
from tests.mock_aws.permissions import actions, read_shipped_policy

IAM = {"tagging": "tag"}  # what signs a request, and what a policy calls the service
ADMINISTRATOR = {  # an administrator makes the backstop's role once; without, deploy goes on without the backstop
    "iam:CreateRole",
    "iam:PutRolePolicy",
    "iam:DeleteRolePolicy",
    "iam:DeleteRole",
}


def unforeseen(account: Account) -> list[str]:
    """The calls that the policy allows nowhere, as it would name them."""
    patterns = [pattern for statement in read_shipped_policy() for pattern in actions(statement)]
    made = {f"{IAM.get(call.service, call.service)}:{call.action}" for call in account.calls()}
    assert "ec2:CreateVpc" in made
    return sorted(action for action in made - ADMINISTRATOR if not any(fnmatchcase(action, pattern) for pattern in patterns))
