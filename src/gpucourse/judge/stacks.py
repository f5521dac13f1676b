"""What processes of a judge share: how they end with their parent, and how they report where they are."""

from __future__ import annotations

import ctypes
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

_SET_DEATH_SIGNAL = 1  # of Linux' prctl


def end_with_parent(limit_s: float) -> None:
    """Make this process end when its parent does, and in any case some time after its limit."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limit_s + 10.0)


def line_of_stack(stack: Path, name: str) -> str:
    """Return `my_ring.py:14` from what faulthandler wrote: the innermost line of the file of that name; empty if there is
    none."""
    with suppress(OSError):
        text = stack.read_text(encoding="utf-8", errors="replace")
        match = re.search(rf'File "(?:[^"]*/)?{re.escape(name)}", line (\d+)', text)
        return f"{name}:{match[1]}" if match else ""
    return ""
