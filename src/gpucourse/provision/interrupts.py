"""Ctrl-C while Terraform works: counted instead of raised, and passed on so that nothing is lost.

Terraform reads one SIGINT as "finish what is in flight, save, end". A second one makes it end at once, without saving; so it is
sent only if nothing was changed yet, or when the user presses Ctrl-C a third time.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, final

from gpucourse.model.event import Note

_STOPPING = "stopping: Terraform finishes what is in flight and saves what it knows"
_PATIENCE = "still saving. Ctrl-C once more forces the end, and may leave something behind that is not recorded"
_FORCED = "forced: what was in flight may not be recorded; `gpucourse destroy` looks for it"


@final
class Interrupts:
    """Counts the requests to stop: Ctrl-C in the main thread, and `stop` once it is set. A context manager.

    If another SIGINT handler is installed, it stays, and the code that catches its KeyboardInterrupt calls `request_stop`.
    """

    def __init__(self, stop: threading.Event | None = None) -> None:
        self._stop = stop
        self._wishes = 0
        self._answered = 0
        self._sent = 0
        self._heard_stop = False
        self._before: Any = None

    @property
    def is_requested(self) -> bool:
        """Return whether a stop was requested."""
        self._listen()
        return self._wishes > 0

    def request_stop(self) -> None:
        """Request a stop."""
        self._wishes += 1

    def pass_on(self, process: subprocess.Popen[bytes], *, changing: bool, tell: Callable[[Note], None]) -> None:
        """Act on the requests since the last call. `changing`: something has already been built or removed."""
        self._listen()
        while self._answered < self._wishes:
            self._answered += 1
            if self._answered == 1:
                self._send(process, signal.SIGINT)
                tell(Note(text=_STOPPING))
            elif self._answered == 2 and changing:
                tell(Note(text=_PATIENCE, level="warning"))
            else:
                self._send(process, signal.SIGINT if self._sent < 2 else signal.SIGKILL)
                if changing:
                    tell(Note(text=_FORCED, level="warning"))

    def __enter__(self) -> Interrupts:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._count)
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _count(self, _number: int, _frame: FrameType | None) -> None:
        self._wishes += 1

    def _listen(self) -> None:
        if self._stop is not None and self._stop.is_set() and not self._heard_stop:
            self._heard_stop = True
            self._wishes += 1

    def _send(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        self._sent += 1
        process.send_signal(number)
