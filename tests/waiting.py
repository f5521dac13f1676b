"""How tests wait: for a condition, never for a fixed time. A busy machine takes many times as long as an idle one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

STUCK_S = 200.0
"""A condition that is not true by then is given up: not a promise, but the end of a wait, and shorter than pytest's limit."""


def until(condition: Callable[[], Any], subject: str = "the condition") -> Any:
    """Wait for a condition; its value. Fails with `subject` if it never becomes true."""
    deadline = time.monotonic() + STUCK_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{subject}: not within {STUCK_S:.0f} s"
        time.sleep(0.01)
    return value
