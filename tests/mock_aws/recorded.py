"""What the tests' calls asked of the policy, in tests/data/permissions.json: every action, resource and condition of the
policy can be held against a need in a second, without an account.

    RECORD_PERMISSIONS=1 python -m pytest tests/contract tests/system/aws

adds what these tests ask for to the file; remove the file first where the program or a stack asks for less than before.
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
"""Refused to a learner, and expected: somebody who may makes the backstop's role; without, `deploy` goes on without it."""
_CHANCE = re.compile(r"(?<=[-/])[0-9a-f]{6,}(-[0-9a-f]{12})?\b")
_KEPT = {"aws:RequestTag/Project", "aws:ResourceTag/Project"}


def read() -> list[Permission]:
    """Everything on record."""
    recorded: dict[str, list[tuple[str, dict[str, str]]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return [
        Permission(action=action, resource=resource, context=context)
        for action, entries in recorded.items()
        for resource, context in entries
    ]


def list_refused(folder: Path) -> list[str]:
    """What the policy refused in an account whose log lies in this folder, beside what a learner is not meant to do."""
    lines = _lines(folder)
    missing = {
        f"{action} on {resource}" for line in lines for action, resource in line["refused"] if action not in ADMINISTRATORS
    }
    return sorted(missing)


def add(folder: Path) -> None:
    """Put what was asked in that account, and may be asked, on record, if the environment says so."""
    if not os.environ.get(VARIABLE):
        return
    with (Path(gettempdir()) / "gpucourse-permissions.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = {_form(entry) for entry in read()} if FILE.exists() else set()
        for line in _lines(folder):
            for action, resource, context in line["asked"]:
                asked = Permission(action=action, resource=resource, context=context)
                known |= {_form(asked)} if asked.is_allowed else set()
        _write(known)


def _form(permission: Permission) -> str:
    """The permission without what chance or the day put into it."""
    context = {key: value for key, value in permission.context.items() if not key.startswith("aws:") or key in _KEPT}
    return json.dumps([permission.action, _CHANCE.sub("0", permission.resource), dict(sorted(context.items()))])


def _write(forms: set[str]) -> None:
    """By action, one resource a line."""
    entries: dict[str, list[str]] = {}
    for form in sorted(forms):
        action, resource, context = json.loads(form)
        entries.setdefault(action, []).append(json.dumps([resource, context]))
    blocks = [f" {json.dumps(action)}: [\n  " + ",\n  ".join(lines) + "\n ]" for action, lines in entries.items()]
    FILE.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


def _lines(folder: Path) -> list[dict[str, Any]]:
    file = folder / "permissions.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
