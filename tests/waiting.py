"""How tests wait: for a condition, never for a time. A busy machine takes many times what an idle one does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

STUCK_S = 200.0
"""What has not come by then never comes: no promise, but the end of a wait, and less than pytest gives a test."""


def until(condition: Callable[[], Any], what: str = "the condition") -> Any:
    """Wait for a condition; its value. Fails with `what` where it never comes true."""
    deadline = time.monotonic() + STUCK_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {STUCK_S:.0f} s"
        time.sleep(0.01)
    return value
