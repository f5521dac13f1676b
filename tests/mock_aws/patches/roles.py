"""The role of the backstop, which an administrator has created: the course's policy does not allow creating roles."""

from __future__ import annotations

import json
from typing import Any

from moto.iam import models as iam

from gpucourse.aws import schedule
from tests.mock_aws.state import ACCOUNT_ID, State


def install(_state: State) -> None:
    """Create the role when it is first read, because moto loads its state of IAM slowly, and most tests never need it."""
    usual = iam.IAMBackend.get_role
    calls: list[str] = []

    def get_role(self: Any, role_name: str) -> Any:
        if role_name == schedule.ROLE and not calls:
            calls.append(role_name)
            self.create_role(role_name, json.dumps(schedule.trust(ACCOUNT_ID)), "/", None, "", [], None)
        return usual(self, role_name)

    iam.IAMBackend.get_role = get_role  # type: ignore[method-assign]
