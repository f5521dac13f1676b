"""What the course's policy allows a caller, as IAM decides it: by action, resource and condition.

Only what that policy uses is known here: statements that allow, and conditions by StringEquals and StringLike. Anything else
is an error.
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
"""The key of whoever may do everything: the tests' own calls."""
_NAMES = {"tagging": "tag"}  # what signs a request, and what a policy calls the service


@dataclass(frozen=True, kw_only=True)
class Permission:
    """One permission that a call takes: an action on a resource, by its ARN, under the values of condition keys."""

    action: str
    resource: str = "*"
    context: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_allowed(self) -> bool:
        """Whether the course's policy allows it."""
        return allows(read_shipped_policy(), self.action, self.resource, self.context)


def policy_names(service: str, action: str) -> str:
    """Return an action as a policy names it."""
    name = f"{_NAMES.get(service, service)}:{action}"
    return IAM_ACTIONS.get(name, name)


@cache
def read_shipped_policy() -> list[Statement]:
    """Return the statements of the policy that the course hands out."""
    statements: list[Statement] = json.loads(policy_text())["Statement"]
    return statements


def actions(statement: Statement) -> list[str]:
    """Return the patterns of the actions that a statement allows."""
    return _as_list(statement["Action"])


def resources(statement: Statement) -> list[str]:
    """Return the patterns of the resources that a statement allows them on."""
    return _as_list(statement["Resource"])


def allows(statements: Sequence[Statement], action: str, resource: str, context: Mapping[str, str] | None = None) -> bool:
    """Whether some statement allows this action on this resource (an ARN). `context` holds the values of condition keys."""
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
