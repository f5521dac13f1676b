"""Whether the policy allows what was done: every call of ours and of Terraform's provider that reached the account."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase

from gpucourse.aws.policy import policy_text
from tests.mock_aws.account import Account

IAM = {"tagging": "tag"}  # what signs a request, and what a policy calls the service
ADMINISTRATOR = {  # an administrator makes the backstop's role once; without, deploy goes on without the backstop
    "iam:CreateRole",
    "iam:PutRolePolicy",
    "iam:DeleteRolePolicy",
    "iam:DeleteRole",
}


def unforeseen(account: Account) -> list[str]:
    """The calls that the policy allows nowhere, as it would name them."""
    actions = (statement["Action"] for statement in json.loads(policy_text())["Statement"])
    patterns = [one for found in actions for one in ([found] if isinstance(found, str) else found)]
    made = {f"{IAM.get(call.service, call.service)}:{call.action}" for call in account.calls()}
    assert "ec2:CreateVpc" in made
    return sorted(one for one in made - ADMINISTRATOR if not any(fnmatchcase(one, pattern) for pattern in patterns))
