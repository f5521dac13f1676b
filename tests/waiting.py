"""Wait in tests for a condition, never for a fixed time, because a busy machine takes many times as long as an idle one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

STUCK_S = 200.0
"""The longest wait for a condition, in seconds. It is no promise about speed, only shorter than pytest's own limit."""


def until(condition: Callable[[], Any], subject: str = "the condition") -> Any:
    """Wait for a condition and return its value. Fail with `subject` if it never becomes true."""
    deadline = time.monotonic() + STUCK_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{subject}: not within {STUCK_S:.0f} s"
        time.sleep(0.01)
    return value
