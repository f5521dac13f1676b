"""What to give to whoever manages an account: the least that an identity must be allowed, and all that an account needs."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from functools import cache

from gpucourse.aws.tables import table, text
from gpucourse.hardware import hardware

PARTITION = "aws"  # the one that the course's labs are in
_SID = re.compile(r'\n *"Sid": "\w+",')


def policy_text(partition: str = PARTITION) -> str:
    """The policy as indented JSON, ending in a newline, for accounts of that partition. It starts the instance types that the
    course offers, and no other."""
    types = ", ".join(map(json.dumps, hardware().startable_types))
    policy = text("policy.json").replace('"@GPU_TYPES@"', types)
    if partition == PARTITION:
        return policy
    # The ARNs are longer, and IAM takes 6,144 characters: without the names of the statements it fits, and allows the same.
    return _SID.sub("", policy).replace(f"arn:{PARTITION}:", f"arn:{partition}:")


def setup_text(partition: str = PARTITION) -> str:
    """What an administrator gives an account of that partition once, as a CloudFormation template in JSON, ending in a newline:
    the policy, a user who has it, the backstop's role, AWS's own roles, a budget that sends mail."""
    lines = policy_text(partition).rstrip("\n").replace("\n", "\n" + 8 * " ")
    return text("account.json").replace('"@POLICY@"', lines).replace(f"(partition {PARTITION})", f"(partition {partition})")


def names(action: str) -> bool:
    """Whether the policy allows this action on anything at all."""
    return any(fnmatchcase(action, pattern) for pattern in _patterns())


@cache
def _patterns() -> tuple[str, ...]:
    listed = [statement["Action"] for statement in table("policy")["Statement"]]
    return tuple(pattern for item in listed for pattern in ([item] if isinstance(item, str) else item))
