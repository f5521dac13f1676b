"""Documents for the administrator of an account: the minimum permissions of an identity, and the set-up of an account."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from functools import cache

from gpucourse.aws.tables import table, text
from gpucourse.hardware import hardware

PARTITION = "aws"  # the partition of the course's labs
_SID = re.compile(r'\n *"Sid": "\w+",')


def policy_text(partition: str = PARTITION) -> str:
    """Return the policy as indented JSON, ending in a newline, for accounts of that partition.

    The policy allows only GPU instances in the sizes that the course offers. The names of the statements in policy.json are for
    human readers. They are left out here, because IAM accepts at most 6,144 characters and the policy may grow.
    """
    types = ", ".join(map(json.dumps, _list_type_patterns()))
    policy = _SID.sub("", text("policy.json").replace('"@GPU_TYPES@"', types))
    return policy if partition == PARTITION else policy.replace(f"arn:{PARTITION}:", f"arn:{partition}:")


def _list_type_patterns() -> list[str]:
    """List the instance types that the course starts, one pattern per size: g*.2xlarge for g5.2xlarge and g6.2xlarge."""
    by_size: dict[tuple[str, str], list[str]] = {}
    for name in hardware().startable_types:
        by_size.setdefault((name[0], name.partition(".")[2]), []).append(name)
    return [names[0] if len(names) == 1 else f"{kind}*.{size}" for (kind, size), names in by_size.items()]


def setup_text(partition: str = PARTITION) -> str:
    """Return the set-up of an account of that partition, as a CloudFormation template in JSON that ends in a newline.

    An administrator uses the template once. It contains the policy, a user with this policy, the backstop's role, AWS's
    service roles, and a budget that sends mail.
    """
    lines = policy_text(partition).rstrip("\n").replace("\n", "\n" + 8 * " ")
    return text("account.json").replace('"@POLICY@"', lines).replace(f"(partition {PARTITION})", f"(partition {partition})")


def allows(action: str) -> bool:
    """Return whether the policy allows this action on any resource."""
    return any(fnmatchcase(action, pattern) for pattern in _patterns())


@cache
def _patterns() -> tuple[str, ...]:
    actions = [statement["Action"] for statement in table("policy")["Statement"]]
    return tuple(pattern for item in actions for pattern in ([item] if isinstance(item, str) else item))
