"""The least that an identity must be allowed for the course, as an IAM policy document to hand to whoever grants it."""

from __future__ import annotations

from gpucourse.aws.tables import text


def policy_text() -> str:
    """The policy as indented JSON, ending in a newline. `docs/aws-policy.json` is the same text."""
    return text("policy.json")


def policy_size() -> int:
    """Its size as IAM counts it, without white space: a managed policy may have 6144 characters."""
    return len("".join(policy_text().split()))
