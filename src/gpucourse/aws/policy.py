"""The least that an identity must be allowed for the course, as an IAM policy document to hand to whoever grants it."""

from __future__ import annotations

import json

from gpucourse.aws.tables import text
from gpucourse.hardware import hardware


def policy_text() -> str:
    """The policy as indented JSON, ending in a newline. It starts the instance types that the course offers, and no other."""
    types = ", ".join(map(json.dumps, hardware().startable_types))
    return text("policy.json").replace('"@GPU_TYPES@"', types)
