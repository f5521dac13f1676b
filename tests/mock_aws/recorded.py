"""The permissions that the tests' calls needed, in tests/data/permissions.json. With this file, a test compares every action,
resource and condition of the policy with a need in a second, without an account.

    RECORD_PERMISSIONS=1 python -m pytest tests/system/aws

adds the needs of these tests to the file. Remove the file first if the program or a stack needs less than before.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from tests.mock_aws.permissions import Permission

FILE = Path(__file__).parents[1] / "data" / "permissions.json"
VARIABLE = "RECORD_PERMISSIONS"
ADMINISTRATORS = {"iam:CreateRole"}
"""Refusals that are expected for a learner: only an administrator may create the backstop's role."""
_REGION = re.compile(r"(?<=:)[a-z]{2}-[a-z]+-[0-9](?=:)")
_CHANCE = re.compile(r"(?<=[-/])[0-9a-f]{6,}(-[0-9a-f]{12})?\b")
_KEPT = {"aws:RequestTag/Project", "aws:ResourceTag/Project"}


def read() -> list[Permission]:
    """Return everything on record."""
    recorded: list[tuple[str, str, dict[str, str]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return [Permission(action=action, resource=resource, context=context) for action, resource, context in recorded]


def list_refused(folder: Path) -> list[str]:
    """Return what the policy refused in an account whose log is in this folder, without actions that a learner is not meant to
    take.
    """
    refusals = {tuple(entry) for line in _lines(folder) for entry in line["refused"]}
    return sorted(f"{action} on {resource}" for action, resource in refusals if action not in ADMINISTRATORS)


def add(folder: Path) -> None:
    """Record the permissions that were needed in that account, if the environment says so."""
    if not os.environ.get(VARIABLE):
        return
    with (Path(gettempdir()) / "gpucourse-permissions.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        permissions = read() if FILE.exists() else []
        for line in _lines(folder):
            permissions += [Permission(action=name, resource=arn, context=context) for name, arn, context in line["asked"]]
        forms = {_form(permission) for permission in permissions if permission.is_allowed}
        FILE.write_text("[\n " + ",\n ".join(sorted(forms)) + "\n]\n", encoding="utf-8")


def _form(permission: Permission) -> str:
    """Return the permission as a line of the file, without random or dated parts, and as if there were only one region."""
    context = {key: value for key, value in permission.context.items() if not key.startswith("aws:") or key in _KEPT}
    return json.dumps(
        [permission.action, _CHANCE.sub("0", _REGION.sub("us-east-2", permission.resource)), dict(sorted(context.items()))]
    )


def _lines(folder: Path) -> list[dict[str, Any]]:
    file = folder / "permissions.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
