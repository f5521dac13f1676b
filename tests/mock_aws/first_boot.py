"""The files that the first boot of a node leaves, in the folder that replaces the root of a simulated computer."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

STATE = "var/lib/gpucourse"
TTL_S = 4 * 3600


def leave_marks(root: Path, tags: Mapping[str, str], *, python: str) -> None:
    """Write the files of a successful set-up: its last step, the ready marker, the deadline. A second boot does not change
    them.

    The marker describes the computer as it is: it has no GPU, whatever its instance type.
    """
    state = root / STATE
    if (state / "ready").exists():
        return
    state.mkdir(parents=True, exist_ok=True)
    name = tags.get("Node", "node0")
    message = {
        "version": 1,
        "name": name,
        "role": "head" if name == "node0" else "worker",
        "stack": tags.get("Stack", ""),
        "python": python,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": platform.release(),
        "os": platform.system(),
        "python_version": platform.python_version(),
        "gpus": [],
        "driver": "",
    }
    (state / "deadline").write_text(f"{_deadline(tags.get('Expires', ''), time.time()):.0f}\n", encoding="utf-8")
    (state / "step").write_text("done\n", encoding="utf-8")
    aside = state / "ready.new"
    aside.write_text(json.dumps(message, indent=2) + "\n", encoding="utf-8")
    aside.replace(state / "ready")


def _deadline(expires: str, now: float) -> float:
    """Return the end of the stack. If that has passed or is unknown, return a default, as the set-up does."""
    end = datetime.fromisoformat(expires).timestamp() if expires else 0.0
    return end if end >= now + 600 else now + TTL_S
