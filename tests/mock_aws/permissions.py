"""The permissions of a caller with the course's policy, as IAM decides them: by action, resource and condition.

Only the features that this policy uses are supported: statements that allow, and the conditions StringEquals and StringLike.
Anything else is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from gpucourse.aws.policy import policy_text
from gpucourse.aws.session import IAM_ACTIONS

Statement = Mapping[str, Any]

ADMINISTRATOR = "AKIAMOCKADMINISTRATO"
"""The access key of an administrator, which the tests' own calls use."""
_NAMES = {"tagging": "tag"}  # the service's name in a signature, and in a policy


@dataclass(frozen=True, kw_only=True)
class Permission:
    """One permission that a call needs: an action on a resource (its ARN), with the values of condition keys."""

    action: str
    resource: str = "*"
    context: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_allowed(self) -> bool:
        """Return whether the course's policy allows it."""
        return allows(read_shipped_policy(), self.action, self.resource, self.context)


def policy_names(service: str, action: str) -> str:
    """Return the action's name in a policy."""
    name = f"{_NAMES.get(service, service)}:{action}"
    return IAM_ACTIONS.get(name, name)


@cache
def read_shipped_policy() -> list[Statement]:
    """Return the statements of the policy that ships with the course."""
    statements: list[Statement] = json.loads(policy_text())["Statement"]
    return statements


def actions(statement: Statement) -> list[str]:
    """Return the patterns of the actions that a statement allows."""
    return _as_list(statement["Action"])


def resources(statement: Statement) -> list[str]:
    """Return the patterns of the resources for which a statement allows them."""
    return _as_list(statement["Resource"])


def allows(statements: Sequence[Statement], action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
    """Return whether a statement allows this action on this resource (an ARN). `context`: the values of condition keys."""
    return any(
        _matches(actions(statement), action)
        and _matches(resources(statement), resource)
        and _holds(statement.get("Condition", {}), context or {})
        for statement in statements
        if _is_allow(statement)
    )


def _is_allow(statement: Statement) -> bool:
    unknown = set(statement) - {"Sid", "Effect", "Action", "Resource", "Condition"}
    if statement["Effect"] != "Allow" or unknown:
        raise ValueError(f"not understood here: {statement}")
    return True


def _holds(condition: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    if set(condition) - {"StringEquals", "StringLike"}:
        raise ValueError(f"not understood here: {condition}")
    equal = (context.get(key) in _as_list(values) for key, values in condition.get("StringEquals", {}).items())
    patterns = condition.get("StringLike", {})
    return all(equal) and all(key in context and _matches(_as_list(patterns[key]), context[key]) for key in patterns)


def _matches(patterns: Sequence[str], value: str) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)


def _as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
